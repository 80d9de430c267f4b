//! Congestion controls, set per connection (tcp(7), TCP_CONGESTION).

use crate::error::Error;
use crate::net::{probe, sysctl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use thalweg_plan::plan::Experiment;

/// Checks that this host can use the algorithms of these flows.
///
/// # Errors
/// Those of [`set`], or `too-many-connections` if no descriptor is left.
pub(in crate::traffic) fn check(experiment: &Experiment, flows: &[usize]) -> Result<(), Error> {
    let names: BTreeSet<&str> = flows.iter().map(|flow| experiment.flows[*flow].cc.as_str()).collect();
    for name in names {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(super::limits::exhausted)?;
        set(&socket, name)?;
    }
    Ok(())
}

/// Sets a connection's algorithm.
///
/// # Errors
/// `unknown-cc` if the kernel cannot set it, `cc-not-allowed` if this user may not use it.
pub(in crate::traffic) fn set(socket: impl AsFd, name: &str) -> Result<(), Error> {
    sockopt::set_tcp_congestion(socket, name)
        .map_err(|error| refusal(name, error, &probe::algorithms().join(", "), &allowed()))
}

/// Returns the algorithms that unprivileged users may set, separated by commas.
fn allowed() -> String {
    let names = sysctl::read("net.ipv4.tcp_allowed_congestion_control").unwrap_or_default();
    names.split_whitespace().collect::<Vec<_>>().join(", ")
}

fn refusal(name: &str, error: Errno, available: &str, allowed: &str) -> Error {
    match error {
        Errno::NOENT => Error::new(
            "unknown-cc",
            format!("this kernel does not have the congestion control `{name}`; available: {available}"),
            format!("use one of these, or load its module as root: `modprobe tcp_{name}`"),
        ),
        Errno::PERM => Error::new(
            "cc-not-allowed",
            format!("this user may not use the congestion control `{name}`; allowed: {allowed}"),
            format!(
                "use one of these, or as root: `sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{} {name}\"`",
                allowed.replace(',', "")
            ),
        ),
        other => Error::new(
            "unknown-cc",
            format!("the congestion control `{name}` cannot be set: {other}; available: {available}"),
            "use one of these",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_algorithm_is_reported_with_the_available_ones() {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let error = set(&socket, "nosuchcc").unwrap_err();
        assert_eq!(error.code, "unknown-cc");
        assert!(error.message.contains("`nosuchcc`") && error.message.contains("reno"), "{error}");
        set(&socket, "reno").unwrap();
        assert_eq!(sockopt::tcp_congestion(&socket).unwrap().trim_end_matches('\0'), "reno");
    }

    #[test]
    fn a_disallowed_algorithm_is_reported_with_the_command_that_allows_it() {
        let error = refusal("bbr", Errno::PERM, "reno, cubic, bbr", "reno, cubic");
        assert_eq!(error.code, "cc-not-allowed");
        assert!(error.message.ends_with("allowed: reno, cubic"), "{error}");
        assert!(error.hint.contains("tcp_allowed_congestion_control=\"reno cubic bbr\""), "{error}");
    }
}
