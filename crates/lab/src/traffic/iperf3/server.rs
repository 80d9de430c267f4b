//! The receivers of flows that iperf3 makes: one server for each, which ends when its flow has.

use crate::error::Error;
use crate::traffic::iperf3::not_started;
use crate::traffic::iperf3::plan::{check, server_port};
use crate::traffic::sys;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_plan::plan::Experiment;

/// How long servers may take until they listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Servers; they are killed when this is dropped.
#[derive(Debug)]
pub(in crate::traffic) struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It leads a group of its own, and its number is not given to others before it has been waited for.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

/// Starts a server for each of these flows of the plan, and waits until they listen.
///
/// # Errors
/// iperf3 is not there, a server ends, or a port is taken.
pub(in crate::traffic) fn serve(experiment: &Experiment, flows: &[usize], port: u16) -> Result<Servers, Error> {
    check(experiment)?;
    let mut servers = Servers(Vec::new());
    let ports: Vec<u16> = flows.iter().map(|flow| server_port(port, *flow)).collect();
    for port in &ports {
        let mut command = Command::new("iperf3");
        command.args(["-s", "-1", "-4", "-p", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        servers.0.push(sys::die_with_us(&mut command).spawn().map_err(|error| not_started(&error))?);
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listening = listening_ports();
        let Some(missing) = ports.iter().find(|port| !listening.contains(port)) else { return Ok(servers) };
        let has_ended = servers.0.iter_mut().any(|server| !matches!(server.try_wait(), Ok(None)));
        if has_ended || Instant::now() > deadline {
            return Err(Error::new(
                "cannot-listen",
                format!("`iperf3 -s` does not listen on port {missing}"),
                format!("try `iperf3 -s -1 -p {missing}` by hand; `ss -lntp` names who has the port"),
            ));
        }
        // Nothing tells when a process begins to listen; its flows start tens of milliseconds from now.
        thread::sleep(Duration::from_millis(2));
    }
}

/// TCP ports over IPv4 with a listener in this network namespace.
fn listening_ports() -> Vec<u16> {
    /// TCP state LISTEN as /proc/net/tcp writes it.
    const LISTEN: &str = "0A";
    // `thread-self`: the namespace of the one who asks.
    let table = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
    let port = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTEN).then_some(port)
    };
    table.lines().filter_map(port).collect()
}
