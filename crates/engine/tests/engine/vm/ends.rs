//! Runs leave no guest behind, however they end.

use super::{bench, is_available};
use crate::common::{Running, journal, names};
use crate::stage::{children, experiment, namespaces, wait_for, wait_until_gone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn guest(engine: u32) -> u32 {
    wait_for("a guest", || {
        children(engine).into_iter().find(|(_, words)| words.contains("virtserialport")).map(|(pid, _)| pid)
    })
}

#[test]
fn a_killed_engine_and_ctrl_c_end_the_guest_even_while_it_boots() {
    if !is_available() {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        let mut experiment = experiment();
        experiment["duration_ns"] = json!(600_000_000_000_u64);
        let bench = bench([experiment]);
        let mut running = Running::start(bench.run("run", &[]));
        running.wait_for("started", 1);
        let guest = guest(running.child.id());
        let lived_in = namespaces([guest]);
        kill_process(Pid::from_child(&running.child), signal).unwrap();
        let code = running.child.wait().unwrap().code();
        wait_until_gone(&[guest], &lived_in);
        if signal == Signal::INT {
            assert_eq!(code, Some(130));
            assert_eq!(names(&journal(&bench.path("run"))), ["started", "interrupted"]);
        }
    }
}
