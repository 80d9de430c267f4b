//! Runs tests inside a guest whose kernel has the required queue disciplines.

use super::cannot_run;
use std::path::Path;
use std::process::Command;

/// Environment variable that is set in the guest.
const IN_GUEST: &str = "THALWEG_IN_GUEST";

/// Runs the calling test, `name`, in the guest. Returns true inside the guest; outside it waits and returns false.
pub fn is_in_guest(name: &str) -> bool {
    if std::env::var_os(IN_GUEST).is_some() {
        return true;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/uml/run-in-uml");
    let test = std::env::current_exe().expect("the test's own file");
    let mut command = Command::new(script);
    command.arg(test).args([name, "--exact", "--nocapture", "--test-threads=1"]).env(IN_GUEST, "1");
    let output = command.output().expect("python3 runs tests/uml/run-in-uml");
    if output.status.code() == Some(77) {
        cannot_run("the kernel of `uml` is not built: thalweg kernel build");
        return false;
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "in the guest: {stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("1 passed"), "the guest ran no test named {name}: {stdout}");
    false
}
