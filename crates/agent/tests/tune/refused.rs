//! An algorithm that can no longer be set.

use crate::common::{Running, wait_until};
use crate::registration::lock_registrations;
use crate::rows;
use crate::stage::Stage;
use crate::traffic::{Pair, connect_to, listen};
use crate::tuning::{because, cc, choice, decided, hosts, tune};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// An eBPF algorithm, which can be unloaded while it is an arm.
pub const OBJECT: &str = concat!(env!("OUT_DIR"), "/fixed_window.bpf.o");

fn left_out(stage: &Stage) -> Value {
    let socket = stage.path("agent.sock");
    let output = Command::new(stage.agent_file()).args(["tune", "status", "--json", "--socket"]).arg(socket).output();
    let status: Value = serde_json::from_slice(&output.expect("it starts").stdout).expect("JSON");
    status["left_out"].clone()
}

#[test]
fn a_removed_algorithm_is_reported_and_left_out_of_the_choice() {
    let Some(stage) = Stage::new() else { return };
    let _right = lock_registrations();
    let hosts = hosts();
    let loader = Running::start(Command::new(stage.agent_file()).args(["cc", "load", OBJECT]));
    assert!(loader.said.contains("fixed_window: registered"), "{}", loader.said);
    let settings = "policy = \"static\"\nholdout = 0.0\nprivate = true\n[static]\nfixed_window = 1.0\ncubic = 1.0\n";
    let agent = tune(&stage, settings, &["--arms", "reno,cubic,bbr,fixed_window"]);
    let listener = listen(&hosts.0, "10.9.8.1");
    // Both ends have sent their FIN, so that the next connection is drawn again.
    let next = || {
        let pair = connect_to(&hosts.1, &listener, "10.9.8.1");
        let ccs = [cc(&pair.server), cc(&pair.client)];
        Pair::close_by_client(pair);
        ccs
    };
    wait_until("it is chosen", || next().contains(&"fixed_window".to_owned()));
    assert_eq!(left_out(&stage), serde_json::json!([]));

    assert_eq!(loader.end(Signal::TERM).0, Some(0));
    wait_until("it is left out", || {
        // Half of the connections draw the removed algorithm, and keep the default.
        assert!(next().iter().all(|cc| cc == "cubic" || cc == "reno"));
        left_out(&stage) == serde_json::json!(["fixed_window"])
    });
    // If the removed algorithm were still drawn, the probability of this result would be 2^-40.
    (0..20).for_each(|_| assert_eq!(next(), ["cubic", "cubic"]));
    assert!(decided(&stage, "refused", Some("fixed_window")) > 0);
    let (code, output) = agent.process.end(Signal::TERM);
    assert_eq!(code, Some(0));
    assert_eq!(output.matches("excludes fixed_window: the kernel refused to set it").count(), 1, "{output}");
    let rows = rows::read(&stage.path("records"));
    let drawn =
        rows.iter().find(|row| choice(row) == ["untouched", "", "reno", "reno"]).expect("one that has drawn it");
    assert_eq!(because(drawn), "refused");
}
