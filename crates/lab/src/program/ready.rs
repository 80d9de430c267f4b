//! Checks whether a server is ready.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use thalweg_plan::plan::Ready;

/// Number of bytes of an output file that are searched for a text.
const MAX_OUTPUT: u64 = 1 << 20;

/// TCP state LISTEN in the format of /proc/net/tcp.
const LISTEN: &str = "0A";

/// Returns whether a server is ready; its output is in `files`.
pub(super) fn is_ready(ready: &Ready, port: u16, files: [&Path; 2], age: Duration) -> bool {
    match ready {
        Ready::Listening => is_bound(port),
        Ready::Output { text } => files.iter().any(|file| beginning(file).contains(text)),
        Ready::After { after_ns } => u128::from(after_ns.0) <= age.as_nanos(),
    }
}

/// Describes the condition that is not met.
pub(super) fn missing(ready: &Ready, port: u16) -> String {
    match ready {
        Ready::Listening => format!("no socket is bound to its port {port}"),
        Ready::Output { text } => format!("it has not printed {text:?}"),
        Ready::After { .. } => "its time has not elapsed".to_owned(),
    }
}

/// Returns whether a TCP socket listens on a port of this network namespace, or a UDP socket is bound to it.
fn is_bound(port: u16) -> bool {
    // Not `self`, because the threads of a process may be in different network namespaces.
    let table = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    ["tcp", "tcp6"].into_iter().any(|name| has_socket(&table(name), port, Some(LISTEN)))
        || ["udp", "udp6"].into_iter().any(|name| has_socket(&table(name), port, None))
}

fn has_socket(table: &str, port: u16, state: Option<&str>) -> bool {
    sockets(table).any(|(local, at)| local == port && state.is_none_or(|state| at == state))
}

/// Returns the local port and the state of each socket in a table of /proc/net, such as `tcp`.
pub(crate) fn sockets(table: &str) -> impl Iterator<Item = (u16, &str)> {
    table.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let port = u16::from_str_radix(fields.next()?.rsplit(':').next()?, 16).ok()?;
        Some((port, fields.nth(1)?))
    })
}

fn beginning(file: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(file).and_then(|file| file.take(MAX_OUTPUT).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Joins the last lines of standard error, or of standard output if standard error is empty, into one line.
pub(super) fn last_words(stdout: &Path, stderr: &Path) -> String {
    const LINES: usize = 3;
    const MAX_CHARS: usize = 300;
    let tail = |file: &Path| -> String {
        let text = end(file);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join(" | ").chars().take(MAX_CHARS).collect()
    };
    let words = Some(tail(stderr)).filter(|words| !words.is_empty()).unwrap_or_else(|| tail(stdout));
    if words.is_empty() { "it printed nothing".to_owned() } else { format!("its last output: {words}") }
}

fn end(file: &Path) -> String {
    use std::io::{Seek, SeekFrom};
    const BYTES: u64 = 4096;
    let mut bytes = Vec::new();
    let _ = File::open(file).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
        file.take(BYTES).read_to_end(&mut bytes)
    });
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_and_bound_udp_sockets_are_found_and_connections_are_not() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1151 00000000:0000 0A 0\n   1: 0100007F:1152 \
                     01:0 01 0\n";
        assert!(has_socket(table, 0x1151, Some(LISTEN)));
        assert!(!has_socket(table, 0x1152, Some(LISTEN)) && !has_socket(table, 0x1153, None));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(is_bound(port));
    }
}
