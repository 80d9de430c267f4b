//! Faults during recording.

use crate::common::{Namespace, wait_until};
use crate::rows;
use crate::stage::{Agent, Stage};
use crate::traffic::connect;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

fn carry(namespaces: &(Namespace, Namespace)) {
    let mut pair = connect(namespaces, "10.9.8.1");
    pair.download(10_000);
    pair.close_by_client();
}

fn number(agent: &Agent, name: &str) -> u64 {
    agent.status()["writer"][name].as_u64().unwrap_or_else(|| panic!("no number {name}"))
}

fn closed(folder: &Path) -> usize {
    rows::read(folder).iter().filter(|row| row.text("kind") == "close").count()
}

#[test]
fn rows_are_buffered_while_the_directory_is_missing_and_the_status_reports_it_first() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    carry(&namespaces);
    wait_until("rows are written", || number(&agent, "rows_written") > 0);
    let (records, moved) = (stage.path("records"), stage.path("away"));
    fs::rename(&records, &moved).unwrap();
    carry(&namespaces);
    wait_until("it is noticed", || agent.status()["writer"]["trouble"].is_string());
    assert!(number(&agent, "rows_waiting") > 0);
    let shown = agent.status_text();
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("recording, but cannot "), "{shown}");
    assert!(first.contains(records.to_str().unwrap()), "{shown}");
    // New connections are recorded meanwhile.
    carry(&namespaces);
    fs::rename(&moved, &records).unwrap();
    wait_until("it is over", || agent.status()["writer"]["trouble"].is_null() && number(&agent, "rows_waiting") == 0);
    assert_eq!(number(&agent, "rows_lost"), 0);
    assert_eq!(agent.end().iter().filter(|row| row.text("kind") == "close").count(), 6);
}

/// Starts an agent that writes to a small disk, mounted for it alone. Also returns the disk's path for other processes.
fn on_a_small_disk(stage: &Stage) -> (Agent, PathBuf) {
    let disk = stage.path("disk");
    fs::create_dir(&disk).unwrap();
    let records = disk.join("records");
    let script = format!("mount -t tmpfs -o size=1m tmpfs '{}' && exec \"$@\"", disk.display());
    let before = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let agent = stage.record_behind(&before, &["--out", records.to_str().unwrap()]);
    let root = Path::new("/proc").join(agent.process.pid().to_string()).join("root");
    (agent, root.join(disk.strip_prefix("/").unwrap()))
}

fn fill(path: &Path) {
    let mut ballast = File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while ballast.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn rows_are_buffered_while_the_disk_is_full_and_written_afterwards() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let (agent, disk) = on_a_small_disk(&stage);
    let ballast = disk.join("ballast");
    fill(&ballast);
    carry(&namespaces);
    wait_until("it is noticed", || {
        let status = agent.status();
        status["writer"]["trouble"].as_str().is_some_and(|trouble| trouble.contains("No space left"))
    });
    assert_eq!(number(&agent, "rows_written"), 0);
    fs::remove_file(&ballast).unwrap();
    wait_until("it is over", || agent.status()["writer"]["trouble"].is_null() && number(&agent, "rows_waiting") == 0);
    assert_eq!(closed(&disk.join("records")), 2);
}

#[test]
fn failing_to_write_rows_at_shutdown_is_an_error_and_the_kernel_side_is_removed() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let (agent, disk) = on_a_small_disk(&stage);
    fill(&disk.join("ballast"));
    carry(&namespaces);
    agent.wait_for_closed(2);
    let (code, _) = agent.process.end(Signal::TERM);
    assert_eq!(code, Some(1));
    assert!(!stage.path("agent.sock").exists(), "the socket is gone");
    // A second recorder would be refused if the programs of the first remained.
    let next = stage.record(&[]);
    carry(&namespaces);
    next.wait_for_closed(2);
    assert_eq!(next.end().iter().filter(|row| row.text("kind") == "close").count(), 2);
}
