//! Settings reloaded while the agent is running.

use crate::common::wait_until;
use crate::stage::{Agent, Stage};
use crate::traffic::connect;
use crate::tuning::{ALL_CUBIC, cc, hosts, tune};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

fn hang_up(agent: &Agent, stage: &Stage, settings: &str) {
    fs::write(stage.path("tune.toml"), settings).unwrap();
    kill_process(Pid::from_raw(agent.process.pid().try_into().unwrap()).unwrap(), Signal::HUP).unwrap();
}

#[test]
fn sighup_applies_new_settings_and_keeps_the_old_ones_if_they_are_invalid() {
    let Some(stage) = Stage::new() else { return };
    let hosts = hosts();
    let agent = tune(&stage, ALL_CUBIC, &[]);
    let gets = || cc(&connect(&hosts, "10.9.8.1").server);
    assert_eq!(gets(), "cubic");

    hang_up(&agent, &stage, &format!("{ALL_CUBIC}[guard]\nalhpa = 1\n"));
    wait_until("it is refused", || agent.status()["reload_trouble"].as_str().is_some_and(|why| why.contains("alhpa")));
    assert_eq!(gets(), "cubic", "the earlier ones stay");

    let keep = "[[override]]\nprefix = \"10.9.8.0/24\"\nkeep = true\n";
    hang_up(&agent, &stage, &format!("grace = \"7min\"\n{ALL_CUBIC}{keep}"));
    wait_until("it is applied", || gets() == "reno");
    assert!(agent.status()["reload_trouble"].is_null());

    hang_up(&agent, &stage, ALL_CUBIC);
    wait_until("it is taken back", || gets() == "cubic");
    hang_up(&agent, &stage, &ALL_CUBIC.replace("holdout = 0.0", "holdout = 1.0"));
    wait_until("all are held out", || gets() == "reno");
    let (code, output) = agent.process.end(Signal::TERM);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[1..4].contains(&"policy: static"), "{output}");
    assert!(lines.iter().any(|line| line.starts_with("arms: reno, ") && line.contains("(the default)")), "{output}");
}
