//! Helpers of the network tests.

pub mod dump;
pub mod roles;
pub mod uml;

use serde_json::json;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use thalweg_plan::plan::Experiment;

/// Timeout of waits, far above their duration on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns an experiment with one flow.
pub fn experiment() -> Experiment {
    let link = |capacity: serde_json::Value, bytes: u64| {
        json!({
            "capacity": capacity, "buffer": { "kind": "bytes", "bytes": bytes }, "queue": { "kind": "fifo" },
            "loss": { "kind": "bernoulli", "ratio": 0.0 }, "duplicate": 0.0, "delay_ns": 20_000_000, "jitter_ns": 0,
            "reorder": 0.0, "reorder_delay_ns": 0,
        })
    };
    let host = json!({ "sndbuf_max_bytes": 8_000_000, "rcvbuf_max_bytes": 50_000, "delay_jitter_ns": 0 });
    let steps = json!({ "kind": "steps", "steps": [{ "at_ns": 0, "rate_bps": 20_000_000 }] });
    let experiment = json!({
        "experiment": 0, "repetition": 0, "sweep": {}, "seed": 1, "duration_ns": 1_000_000_000,
        "sample_interval_ns": 0, "start_jitter_ns": 0, "rtt_ns": 40_000_000,
        "forward": link(steps, 100_000), "reverse": link(json!({ "kind": "unlimited" }), 1_000_000),
        "hosts": { "sender": host, "receiver": host },
        "flows": [{
            "name": "bulk", "cc": "reno", "cc_params": {}, "start_ns": 0, "stop_ns": null,
            "load": { "kind": "unlimited" }, "repeat": { "kind": "once" }, "count": 1, "extra_rtt_ns": 0, "host": "sender",
        }],
        "background": [],
        "engine": { "link": "auto", "traffic": "builtin", "offloads": false, "record": false },
    });
    serde_json::from_value(experiment).expect("an experiment")
}

/// Returns an experiment with a second flow, which has extra RTT.
pub fn experiment_with_a_far_flow() -> Experiment {
    let mut experiment = experiment();
    let mut far = experiment.flows[0].clone();
    far.name = "far".to_owned();
    far.extra_rtt_ns = thalweg_units::Span::from_millis(60);
    experiment.flows.push(far);
    experiment
}

/// Reports that a test is skipped on this machine. In CI that is a failure.
pub fn cannot_run(why: &str) {
    eprintln!("this test could not run: {why}");
    assert_ne!(std::env::var("THALWEG_CI").as_deref(), Ok("1"), "no test is skipped in CI: {why}");
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < give_up, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the output of a command, which must succeed.
pub fn output_of(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    text(&output, &format!("{command:?}"))
}

/// Returns the output of a child, which must succeed.
pub fn output_of_child(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    text(&output, "the child")
}

fn text(output: &Output, what: &str) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{what}: {}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}
