//! Runs tests in a separate network namespace.

use crate::network_support::cannot_run;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Environment variable that is set inside the namespace.
const INSIDE: &str = "THALWEG_TEST_NAMESPACE";

/// Runs the rest of a test in a new network namespace; returns whether this is the process inside it.
///
/// A process with threads may not enter a new user namespace. Therefore, the test binary is started again, for this
/// test alone.
pub fn enter(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        run("ip link set lo up");
        return true;
    }
    let namespace = ["--net", "--pid", "--fork", "--kill-child"];
    let as_user = ["--user", "--map-root-user"];
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(if rustix::process::geteuid().is_root() { &[][..] } else { &as_user });
        unshare.args(namespace).stdin(Stdio::null());
        unshare
    };
    if let Some(missing) = ["unshare", "ip", "timeout"].into_iter().find(|program| !has(program)) {
        cannot_run(&format!("{missing} is missing: sudo apt-get install util-linux iproute2 coreutils"));
        return false;
    }
    let tried = unshare().arg("true").output().expect("unshare is there");
    if !tried.status.success() {
        cannot_run(&format!("no namespaces: {}", String::from_utf8_lossy(&tried.stderr).trim()));
        return false;
    }
    // A test that hangs is killed together with the processes that it has started.
    let binary = std::env::current_exe().expect("a test has a binary");
    let mut inside = unshare();
    inside.args(["timeout", "60"]).arg(binary).args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    let status = inside.env(INSIDE, "1").env("PATH", search_path()).status().expect("unshare is there");
    assert!(status.success(), "{test} failed in its namespace: {status}");
    false
}

/// Returns whether a program is installed.
pub fn has(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file())
}

/// Returns the search path with the folders that an ordinary user's path may lack.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Returns the output of a command, which must succeed.
pub fn run(command: &str) -> String {
    let mut words = command.split(' ');
    let output = Command::new(words.next().expect("a command has a word")).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}
