//! Cgroups that are removed and recreated while they are recorded.

use crate::common::{Namespace, wait_until};
use crate::stage::{Agent, Stage};
use crate::traffic::connect;
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};

fn carry(stage: &Stage, namespaces: &(Namespace, Namespace), cgroup: &Path) {
    let enter = |cgroup: &Path| fs::write(cgroup.join("cgroup.procs"), "0").expect("this process may go there");
    enter(cgroup);
    let mut pair = connect(namespaces, "10.9.8.1");
    pair.download(10_000);
    pair.close_by_client();
    enter(&stage.cgroup);
}

fn record(stage: &Stage, cgroup: &Path) -> Agent {
    fs::create_dir_all(cgroup).unwrap();
    stage.record(&["--cgroup", cgroup.to_str().unwrap()])
}

fn remove(cgroups: &[&Path]) {
    cgroups.iter().for_each(|cgroup| fs::remove_dir(cgroup).unwrap());
}

#[test]
fn a_recreated_cgroup_is_recorded_again() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let service: PathBuf = stage.cgroup.join("service");
    let agent = record(&stage, &service);
    carry(&stage, &namespaces, &service);
    agent.wait_for_closed(2);
    assert_eq!(agent.counter("reattached"), 0);
    remove(&[&service]);
    fs::create_dir(&service).unwrap();
    wait_until("it is attached again", || agent.counter("reattached") == 1);
    carry(&stage, &namespaces, &service);
    agent.wait_for_closed(4);
    let shown = agent.status_text();
    assert!(shown.starts_with("recording\n"), "{shown}");
    assert!(shown.contains("connections while no program was attached (once)"), "{shown}");
    let rows = agent.end();
    assert_eq!(rows.iter().filter(|row| row.text("kind") == "close").count(), 4);
    remove(&[&service]);
}

#[test]
fn a_removed_cgroup_is_reported_until_it_and_its_parents_are_recreated() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let slice = stage.cgroup.join("slice");
    let service = slice.join("service");
    let agent = record(&stage, &service);
    remove(&[&service, &slice]);
    wait_until("it is noticed", || agent.status()["not_attached"].is_string());
    let shown = agent.status_text();
    assert!(shown.starts_with("not recording: cgroup "), "{shown}");
    assert!(shown.contains(service.to_str().unwrap()), "{shown}");
    fs::create_dir_all(&service).unwrap();
    wait_until("it is over", || agent.status()["not_attached"].is_null());
    carry(&stage, &namespaces, &service);
    agent.wait_for_closed(2);
    assert_eq!(agent.process.end(Signal::TERM).0, Some(0));
    remove(&[&service, &slice]);
}
