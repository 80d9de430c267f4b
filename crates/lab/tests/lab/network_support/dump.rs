//! Dumps the state of a network.

use super::output_of_child;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Command;
use thalweg_lab::net::Network;

const COMMANDS: &[&str] =
    &["ip -j -d link", "ip -j addr", "ip -j route", "ip -j neigh", "tc -j qdisc", "tc -j class show dev r0"];

/// Keys whose values differ between equal networks.
const PASSING: &[&str] = &["ifindex", "link_index", "link_netnsid", "refcnt", "operstate"];

/// Carrier flags, which the kernel updates later.
const CARRIER: &[&str] = &["NO-CARRIER", "LOWER_UP", "linkdown"];

fn script(namespace: &str) -> String {
    let mut script = format!("echo '\"{namespace}\"'\n");
    for command in COMMANDS {
        // Only the router has r0.
        if !command.ends_with("r0") || namespace == "router" {
            writeln!(script, "echo \"$({command})\"").expect("a string takes it");
        }
    }
    script
}

fn namespaces(network: &Network) -> Vec<String> {
    let senders = network.senders().iter().map(|place| place.name.clone());
    senders.chain(["receiver".to_owned(), "router".to_owned()]).collect()
}

/// Dumps an existing network and closes it.
pub fn live(mut network: Network) -> Vec<Value> {
    let mut lines = Vec::new();
    for namespace in namespaces(&network) {
        let words = ["sh".into(), "-ec".into(), script(&namespace).into()];
        let child = network.spawn(&namespace, &words, false).expect("it starts");
        lines.extend(parse(&output_of_child(child)));
    }
    network.close().expect("nothing is left");
    lines
}

/// Dumps the network built by running these commands in a shell.
pub fn replayed(commands: &str, namespaces: &[&str]) -> Vec<Value> {
    let mut typed = commands.to_owned();
    for namespace in namespaces {
        writeln!(typed, "nsenter --net=/run/netns/{namespace} sh -e <<'END'\n{}END", script(namespace)).expect("text");
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new("unshare");
    command.arg(if is_root { "-nm" } else { "-Urnm" }).args(["bash", "-ec", &typed]);
    parse(&super::output_of(&mut command))
}

fn parse(output: &str) -> Vec<Value> {
    output.lines().map(|line| forget_passing(serde_json::from_str(line).unwrap_or_else(|_| json!(line)))).collect()
}

fn forget_passing(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let stays = map.into_iter().filter(|(key, _)| !PASSING.contains(&key.as_str()));
            stays.map(|(key, value)| (key, forget_passing(value))).collect()
        }
        Value::Array(items) => {
            let stays = items.into_iter().filter(|item| !item.as_str().is_some_and(|flag| CARRIER.contains(&flag)));
            let mut items: Vec<_> = stays.map(forget_passing).collect();
            // Neighbours are in the order of a hash that differs between namespaces.
            if items.iter().all(|item| item.get("lladdr").is_some()) {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        other => other,
    }
}
