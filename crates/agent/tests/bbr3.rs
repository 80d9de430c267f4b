//! `bbr3` in C returns the results in its vectors.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf/cc/bbr3/test")
}

/// The algorithm, compiled as an ordinary program.
static DRIVER: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let target = tempfile::tempdir().unwrap();
    let program = target.path().join("driver");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover", "-o"])
        .args([&program, &folder().join("driver.c")])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "bbr3.h does not compile as ordinary C");
    (target, program)
});

/// Runs the commands of a file of vectors, and compares each result.
fn check(name: &str) {
    let text = fs::read_to_string(folder().join("vectors").join(name)).unwrap();
    let lines: Vec<(&str, Option<&str>)> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" = ").map_or((line, None), |(command, result)| (command, Some(result))))
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("input");
    fs::write(&input, lines.iter().map(|(command, _)| format!("{command}\n")).collect::<String>()).unwrap();
    let output = Command::new(&DRIVER.1).stdin(File::open(input).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let output = String::from_utf8(output.stdout).unwrap();
    let expected = lines.iter().filter_map(|(command, result)| Some((command, (*result)?)));
    assert_eq!(output.lines().count(), expected.clone().count(), "{name}: a line for each result");
    for (number, ((command, expected), found)) in expected.zip(output.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, result {}: {command}", number + 1);
    }
}

#[test]
fn arithmetic_matches_the_vectors() {
    check("fixed_point.txt");
}

#[test]
fn the_bandwidth_filter_expires_samples_after_two_cycles() {
    check("max_bw.txt");
}

#[test]
fn inflight_is_looked_up_by_send_time() {
    check("inflight_ring.txt");
}

#[test]
fn a_connection_goes_through_all_states() {
    check("connection.txt");
}
