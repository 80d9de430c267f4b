//! Opens and loads a user's object in a separate process first, because libbpf can crash on a damaged object.
//!
//! That process does not report errors: the caller opens and loads the object again, and reports them.

use super::object::Algorithm;
use crate::object;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_store::Problem;

/// Hidden command of the separate process.
pub const COMMAND: &str = "cc-rehearse";

const PATIENCE: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(5);

/// Exit code of a Rust program that has panicked.
const PANICKED: i32 = 101;

/// Opens and loads an object in another process.
///
/// # Errors
/// If that process crashes, exceeds the timeout, or cannot be started.
pub fn rehearse(bytes: &[u8], place: &str) -> Result<(), Problem> {
    let failed = |error: io::Error| {
        Problem::failed("threads", "this process", error, "permission to start another process", "check ulimit -u")
    };
    let mut child = Command::new("/proc/self/exe")
        .arg0("thalweg-agent")
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut pipe) = child.stdin.take() {
        // If the process has crashed already, its exit status below shows that.
        let _ = pipe.write_all(bytes);
    }
    let found = match wait(&mut child).map_err(failed)? {
        None => format!("an object that the verifier could not check within {} s", PATIENCE.as_secs()),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("a damaged object: libbpf crashed with signal {signal}"),
            (None, Some(PANICKED)) => "a damaged object: its type information is inconsistent".to_owned(),
            _ => return Ok(()),
        },
    };
    Err(object::broken(place, found))
}

/// Returns the exit status; `None` if the process exceeded the timeout and was killed.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Opens and loads the object on standard input.
///
/// # Errors
/// If the object cannot be read, opened or loaded.
pub fn run() -> Result<(), Problem> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| object::broken("standard input", error.to_string()))?;
    Algorithm::read(&bytes, "standard input")?.load(false).map(drop)
}
