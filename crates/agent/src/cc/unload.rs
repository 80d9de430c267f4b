//! `cc unload`: unregisters an algorithm.

use super::counters::Counters;
use super::holders::Holder;
use super::kernel::StructOpsKernel;
use super::registered::{Registered, State};
use super::settings;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};
use thalweg_store::Problem;

/// Timeout for a signalled agent to unregister its algorithm.
const PATIENCE: Duration = Duration::from_secs(10);

const POLL: Duration = Duration::from_millis(20);

/// Unregisters an algorithm, after replacing it as the default of this network namespace. Open connections keep it.
///
/// # Errors
/// If the algorithm is not registered, or cannot be replaced as the default or unregistered.
pub fn unload(name: &str, print: &mut dyn FnMut(&str) -> Result<(), Problem>) -> Result<(), Problem> {
    let kernel = StructOpsKernel::probe()?;
    let Some(registered) = Registered::find(&kernel, name) else { return Err(not_registered(name)) };
    let holders = registered.holders();
    refuse_others(name, &holders)?;
    leave_default(name, None, print)?;
    if holders.is_empty() && registered.state == State::Kept {
        registered.unregister()?;
    } else {
        end(&kernel, &registered, &holders)?;
    }
    let live = Counters::of(&registered).map_or(0, |counters| counters.live_flows());
    let rest = match live {
        0 => String::new(),
        1 => "; 1 connection uses it until it closes".to_owned(),
        live => format!("; {live} connections use it until they close"),
    };
    print(&format!("{name}: unregistered{rest}\n"))
}

fn not_registered(name: &str) -> Problem {
    let is_kernels = settings::available().unwrap_or_default().iter().any(|algorithm| algorithm == name);
    let found = if is_kernels { "a kernel algorithm" } else { "no algorithm of this name" };
    Problem::failed("not-loaded", name, found, "a registered eBPF algorithm", "thalweg-agent cc list")
}

/// Replaces the default algorithm of this network namespace if it is `name`, which new connections would otherwise
/// still use after it was unregistered. `before` is the preferred replacement.
pub fn leave_default(
    name: &str,
    before: Option<&str>,
    print: &mut dyn FnMut(&str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    if settings::default().ok().as_deref() != Some(name) {
        return Ok(());
    }
    let available = settings::available().unwrap_or_default();
    let is_there = |other: &&str| *other != name && available.iter().any(|algorithm| algorithm == other);
    let Some(other) = before.into_iter().chain(["bbr", "cubic", "reno"]).find(is_there) else { return Ok(()) };
    settings::set_default(other).map_err(|error| {
        Problem::failed(
            "default",
            "net.ipv4.tcp_congestion_control",
            format!("{name}, and it cannot be changed: {error}"),
            "another default before the algorithm is unregistered",
            &format!("sudo sysctl net.ipv4.tcp_congestion_control={other}"),
        )
    })?;
    print(&format!("net.ipv4.tcp_congestion_control: changed from {name} to {other}\n"))
}

/// Refuses a registration that a program other than the agent holds.
fn refuse_others(name: &str, holders: &[Holder]) -> Result<(), Problem> {
    let Some(other) = holders.iter().find(|holder| !holder.is_agent()) else { return Ok(()) };
    Err(Problem::failed(
        "held-by-other",
        name,
        format!("a registration held by {} (process {})", other.name, other.pid),
        "a registration held by thalweg-agent",
        &format!("end that process: kill {}", other.pid),
    ))
}

/// Signals the agents that hold a registration, and waits until it is removed.
fn end(kernel: &StructOpsKernel, registered: &Registered, holders: &[Holder]) -> Result<(), Problem> {
    let name = &registered.name;
    for holder in holders {
        // If the process has exited meanwhile, the signal is not needed.
        let _ = Pid::from_raw(holder.pid).map(|pid| kill_process(pid, Signal::TERM));
    }
    let deadline = Instant::now() + PATIENCE;
    while registered.is_still_registered(kernel) {
        if Instant::now() > deadline {
            let (found, hint) = match holders.first() {
                Some(holder) => (
                    format!("a registration still held by process {}", holder.pid),
                    format!("end that process: sudo kill -KILL {}", holder.pid),
                ),
                None => (
                    "a registration held by a link that is pinned in a BPF file system".to_owned(),
                    "`sudo bpftool --bpffs link show` names the pinned file; remove it".to_owned(),
                ),
            };
            return Err(Problem::failed("still-held", name, found, "a registration that is released", &hint));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
