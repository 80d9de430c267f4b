//! Runs the exchange in docs/reference/host-protocol.md with a host.

use crate::common::ENGINE;
use crate::stage::is_available;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../../docs/reference/host-protocol.md");

#[test]
fn a_host_responds_as_documented() {
    if !is_available() {
        return;
    }
    let section = PAGE.split("## An exchange").nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks = section.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines: Vec<Value> = blocks.map(|block| serde_json::from_str(block).unwrap()).collect();
    let namespaces = if rustix::process::geteuid().is_root() { "-n" } else { "-Urn" };
    let mut host = Command::new("unshare");
    host.args([namespaces, "sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; exec \"$0\" host", ENGINE]);
    let mut host = host.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = host.stdin.take().unwrap();
    let mut answers = BufReader::new(host.stdout.take().unwrap()).lines();
    for line in lines {
        if line.get("command").is_some() {
            writeln!(stdin, "{line}").unwrap();
            continue;
        }
        let answer: Value = serde_json::from_str(&answers.next().expect("an answer").unwrap()).unwrap();
        assert_eq!(answer["event"], line["event"]);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&answer), keys(&line));
        if answer["event"] == "configured" {
            assert_eq!(answer["sysctls"], line["sysctls"], "settings are read back as the page shows");
        } else {
            assert_eq!(answer, line);
        }
    }
    drop(stdin);
    assert!(answers.next().is_none(), "a host says nothing after `stopped`");
    assert_eq!(host.wait().unwrap().code(), Some(0));
}
