//! Output of a run on a kernel, in addition to the four tables.

use crate::stage::{Outcome, experiment, has, is_available, not_tested, number, text};
use serde_json::json;
use std::fs;
use std::process::Command;

#[test]
fn recorded_packets_become_rows_and_a_capture() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["engine"]["record"] = json!(true);
    let outcome = Outcome::of(experiment);
    let rows = outcome.rows("packets");
    let of = |link: &str, fate: &str| {
        rows.iter().filter(|row| row["link"] == text(link) && row["fate"] == text(fate)).count() as f64
    };
    let mut queue = outcome.rows("queue");
    queue.sort_by_key(|row| number(&row["t_us"]) as u64);
    for link in ["forward", "reverse"] {
        let last = queue.iter().rfind(|row| row["link"] == text(link)).unwrap();
        let [sent, dropped] = ["sent_packets", "dropped_packets"].map(|column| number(&last[column]));
        let queued = of(link, "queued");
        // Queued packets were either sent or still waiting at the end.
        assert!((sent..sent + 100.0).contains(&queued), "{link}: {queued} queued, {sent} sent");
        assert_eq!(of(link, "dropped"), dropped, "{link}");
        assert_eq!(of(link, "lost"), 0.0);
    }
    assert!(of("forward", "dropped") > 0.0, "CUBIC overflows the queue");
    let id = outcome.events("finished")[0]["id"].as_str().unwrap();
    let capture = outcome.bench.path("run/packets").join(format!("{id}.pcapng"));
    // The magic number of a Section Header Block of pcapng.
    assert_eq!(fs::read(&capture).unwrap()[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    if !has("tcpdump") {
        not_tested("that tcpdump reads the capture", "it is not installed");
        return;
    }
    let lines = Command::new("tcpdump").args(["-nr"]).arg(capture).output().unwrap().stdout;
    assert_eq!(lines.split(|byte| *byte == b'\n').count() - 1, rows.len());
}

#[test]
fn running_the_command_log_builds_the_same_network() {
    if !is_available() {
        return;
    }
    let mut experiment = experiment();
    experiment["duration_ns"] = json!(100_000_000);
    experiment["flows"] = json!([crate::stage::flow("near", "cubic"), crate::stage::flow("far", "cubic")]);
    experiment["flows"][1]["extra_rtt_ns"] = json!(30_000_000);
    let outcome = Outcome::of(experiment);
    let log = fs::read_to_string(outcome.bench.path("run/commands.log")).unwrap();
    assert!(log.starts_with("# experiment 0, repetition 0: ") && log.ends_with("# end\n"), "{log}");
    // The log itself documents how to extract a part of it.
    let extract = log.lines().find_map(|line| line.strip_prefix("# This part alone: ")).unwrap();
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        let output = command.args(["-euc", script]).current_dir(outcome.bench.path("run")).output().unwrap();
        assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    shell(extract);
    let namespaces = if rustix::process::geteuid().is_root() { "-nm" } else { "-Urnm" };
    let look = "for name in sender sender-2 router receiver; do \
                  nsenter --net=/run/netns/$name ip -o -4 addr show up; nsenter --net=/run/netns/$name ip -o link; \
                done; \
                nsenter --net=/run/netns/sender-2 ethtool -k eth0 | grep ^tcp-segmentation-offload; \
                nsenter --net=/run/netns/receiver sysctl -n net.ipv4.tcp_rmem";
    let network = shell(&format!("unshare {namespaces} bash -euc '. ./network.sh; {look}'"));
    for line in [
        "inet 10.77.1.2/24",
        "inet 10.77.2.2/24",
        "inet 10.77.0.2/24",
        " s1@",
        " s2@",
        " r0@",
        "tcp-segmentation-offload: off",
        "100000000",
    ] {
        assert!(network.contains(line), "`{line}` is not in:\n{network}");
    }
}
