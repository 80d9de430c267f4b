//! The kernel's settings of congestion control in /proc/sys.

use std::fs;
use std::io;
use thalweg_store::Problem;

const FOLDER: &str = "/proc/sys/net/ipv4";

/// Returns the registered algorithms.
pub fn available() -> io::Result<Vec<String>> {
    names("tcp_available_congestion_control")
}

/// Returns the algorithms that unprivileged users may choose for a socket.
pub fn allowed() -> io::Result<Vec<String>> {
    names("tcp_allowed_congestion_control")
}

/// Returns the default algorithm of new connections in this network namespace.
pub fn default() -> io::Result<String> {
    let name = fs::read_to_string(format!("{FOLDER}/tcp_congestion_control"))?;
    Ok(name.trim().to_owned())
}

/// Changes the default algorithm of new connections in this network namespace.
pub fn set_default(name: &str) -> io::Result<()> {
    fs::write(format!("{FOLDER}/tcp_congestion_control"), name)
}

/// Returns the problem for unreadable settings.
pub fn unreadable(error: io::Error) -> Problem {
    let (expected, hint) = ("the kernel's TCP settings", "mount -t proc proc /proc");
    Problem::missing("no-proc", FOLDER, error, expected, hint)
}

fn names(setting: &str) -> io::Result<Vec<String>> {
    let names = fs::read_to_string(format!("{FOLDER}/{setting}"))?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}
