//! Tests an algorithm that `cc load` has registered, as an arm.

use crate::common::{Running, wait_until};
use crate::registration::lock_registrations;
use crate::stage::Stage;
use crate::traffic::connect;
use crate::tuning::{because, cc, choice, closed, hosts, query_json, tune};
use rustix::process::Signal;
use std::process::Command;

#[test]
fn bbr3_is_an_arm_and_a_prefix_gets_it_until_the_agent_stops() {
    let Some(stage) = Stage::new() else { return };
    let _right = lock_registrations();
    let hosts = hosts();
    let loader = Running::start(Command::new(stage.agent_file()).args(["cc", "load", "bbr3"]));
    assert!(loader.said.contains("bbr3: registered"), "{}", loader.said);
    // All connections draw CUBIC, except those of the server with this client.
    let settings = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\ncubic = 1.0\n\
                    [[override]]\nprefix = \"10.9.8.2/32\"\ncc = \"bbr3\"\n";
    let agent = tune(&stage, settings, &["--arms", "reno,cubic,bbr,bbr3"]);
    let mut pair = connect(&hosts, "10.9.8.1");
    assert_eq!([cc(&pair.server), cc(&pair.client)], ["bbr3", "cubic"]);
    pair.download(1_000_000);
    let shown = hosts.0.output(&["ss", "-Htin", "state", "established", "dst", "10.9.8.2"]);
    assert!(shown.split_whitespace().any(|word| word == "bbr3"), "{shown}");
    pair.close_by_client();
    agent.wait_for_closed(2);
    let status = query_json(&stage, &["status"]);
    assert!(status["arms"].as_array().expect("a list").iter().any(|arm| arm == "bbr3"), "{status}");
    let rows = agent.end();
    let (server, client) = (closed(&rows, "in"), closed(&rows, "out"));
    assert_eq!((choice(server), because(server)), (["untouched", "bbr3", "bbr3", "bbr3"], "override"));
    assert_eq!(choice(client), ["treated", "cubic", "cubic", "cubic"]);
    assert!(server.number("acked_bytes") >= 1_000_000, "{server:?}");

    let pair = connect(&hosts, "10.9.8.1");
    assert_eq!([cc(&pair.server), cc(&pair.client)], ["reno", "reno"], "the agent has stopped");
    drop(pair);
    let (code, output) = loader.end(Signal::TERM);
    assert!(code == Some(0) && output.contains("unregistered"), "{output}");
    wait_until("the kernel no longer has it", || {
        let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        !available.expect("a list").split_whitespace().any(|name| name == "bbr3")
    });
}

#[test]
fn bbr3_is_drawn_like_any_other_arm() {
    let Some(stage) = Stage::new() else { return };
    let _right = lock_registrations();
    let hosts = hosts();
    let loader = Running::start(Command::new(stage.agent_file()).args(["cc", "load", "bbr3"]));
    let settings = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\nbbr3 = 1.0\n";
    let agent = tune(&stage, settings, &["--arms", "reno,cubic,bbr,bbr3"]);
    let mut pair = connect(&hosts, "10.9.8.1");
    pair.download(50_000);
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    for direction in ["in", "out"] {
        assert_eq!(choice(closed(&rows, direction)), ["treated", "bbr3", "bbr3", "bbr3"]);
    }
    assert_eq!(loader.end(Signal::TERM).0, Some(0));
}
