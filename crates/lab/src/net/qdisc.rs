//! Sets the queue discipline of a host's own interface, if the scenario names one. The host's packets pass it before
//! they enter the path.
//!
//! The queue discipline has the kernel's default parameters.

use crate::diag;
use crate::error::Error;
use crate::net::Place;
use crate::net::places::HOST_INTERFACE;
use crate::net::shell::Shell;
use std::collections::{BTreeMap, BTreeSet};
use thalweg_plan::plan::Experiment;

/// Handle of the queue discipline, which identifies its counters.
const HANDLE: &str = "1:";

/// Maximum length of a name in the kernel, in bytes.
const MAX_NAME_BYTES: usize = 15;

/// Common queue disciplines of interfaces of hosts.
const OF_HOSTS: [&str; 9] = ["pfifo", "bfifo", "pfifo_fast", "fq", "fq_codel", "fq_pie", "codel", "cake", "sfq"];

/// Returns whether a queue discipline can have this name: a single plain word of a command.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('-')
}

/// Returns the command that adds the queue discipline to the interface of a host.
pub(crate) fn command(name: &str) -> String {
    format!("tc qdisc replace dev {HOST_INTERFACE} root handle {HANDLE} {name}")
}

/// Adds the queue discipline to a host in a namespace.
///
/// # Errors
/// `no-qdisc`: the kernel does not have it, or it requires parameters.
pub(super) fn set(shell: &mut Shell, place: &Place, name: &str) -> Result<(), Error> {
    shell.run(Some(&place.name), &command(name)).map_err(|error| {
        let has = match of_hosts() {
            Ok(there) => format!("this kernel has {}", Vec::from_iter(there).join(", ")),
            Err(error) => format!("this kernel's queue disciplines are unknown: {}", error.message),
        };
        let hint =
            format!("choose an available one; or, if it is a module: sudo modprobe sch_{name}; or use --engine vm");
        refused(&place.host, name, &error.message, &has, hint)
    })
}

/// Returns the common queue disciplines of hosts that the kernel accepts without parameters.
///
/// # Errors
/// If the system refuses the test.
fn of_hosts() -> Result<BTreeSet<String>, Error> {
    accepted(&OF_HOSTS.map(|name| (name, "")))
}

/// Returns the candidates that the kernel accepts with their parameters.
///
/// # Errors
/// If the system refuses the test.
pub(super) fn accepted(candidates: &[(&str, &str)]) -> Result<BTreeSet<String>, Error> {
    let mut shell = Shell::start()?;
    shell.run(None, "ip link add t0 type veth peer name t1")?;
    let mut accepted = BTreeSet::new();
    for (name, parameters) in candidates {
        let line = format!("tc qdisc replace dev t0 root {name} {parameters}");
        if shell.run(None, line.trim_end()).is_ok() {
            accepted.insert((*name).to_owned());
        }
    }
    Ok(accepted)
}

/// Returns whether a filter of htb can drop packets above a rate.
///
/// # Errors
/// If the system refuses the test.
pub(super) fn has_policers() -> Result<bool, Error> {
    let mut shell = Shell::start()?;
    shell.run(None, "ip link add t0 type veth peer name t1")?;
    let lines = [
        "tc qdisc add dev t0 root handle 1: htb",
        "tc filter add dev t0 parent 1: protocol all u32 match u32 0 0 action police rate 1mbit burst 3000 \
         conform-exceed drop/ok",
    ];
    Ok(shell.run_all(None, &lines.map(str::to_owned)).is_ok())
}

/// Returns the error for a host that cannot have the queue discipline. `reason` is the kernel's message, `has` lists
/// the alternatives.
pub(crate) fn refused(host: &str, name: &str, reason: &str, has: &str, hint: impl Into<String>) -> Error {
    let message = format!("host.{host}.qdisc: the queue discipline `{name}` is not available: {reason}; {has}");
    Error::new("no-qdisc", message, hint)
}

/// Returns the counters of the queue discipline of this host, in which this process runs; empty if the scenario names
/// no queue discipline.
///
/// # Errors
/// If the kernel does not report them.
pub(crate) fn measured(experiment: &Experiment, host: &str) -> Result<BTreeMap<String, f64>, Error> {
    if experiment.hosts.get(host).is_none_or(|host| host.qdisc.is_none()) {
        return Ok(BTreeMap::new());
    }
    let (sent, dropped) = diag::qdisc_counts(HOST_INTERFACE, HANDLE)?;
    let measured = [("host_qdisc_sent_packets", sent), ("host_qdisc_dropped_packets", dropped)];
    Ok(measured.map(|(name, count)| (name.to_owned(), count as f64)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qdisc_name_is_a_single_word_that_is_not_an_option() {
        assert!(["fq", "fq_codel", "pfifo_fast", "mine-2"].into_iter().all(is_name));
        assert!(!["", "-batch", "fq limit 1", "fq;reboot", "a_name_of_16_let"].into_iter().any(is_name));
    }
}
