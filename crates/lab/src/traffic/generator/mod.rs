//! The built-in generator: one loop that opens, writes and times the connections of a host.
//!
//! ```text
//!  epoll ── command  ──► over, stop
//!        ├─ timer    ──► open, next request, stop of a flow, poll, end
//!        └─ socket   ──► established, writable, timestamp of an acknowledgement, broken
//! ```
//!
//! Differences from the simulator (crates/sim) that a real kernel causes:
//! - data in the socket when a flow stops is still sent: the kernel cannot discard it;
//! - after its last transfer a connection is closed, and its FIN is sent;
//! - if the kernel gives up a connection (ETIMEDOUT), or it is reset, its transfer ends incomplete;
//! - the experiment's end resets open connections.

mod account;
mod connections;

use crate::clock::Clock;
use crate::error::Error;
use crate::protocol::{Command, HostEvent};
use crate::stage::{HostReport, Stage};
use crate::traffic::beside::Prepared;
use crate::traffic::generator::connections::{Connections, GeneratorEvent};
use crate::traffic::socket::ports::{Ports, Who};
use crate::traffic::socket::{algorithm, limits};
use crate::traffic::timers::Timers;
use crate::traffic::{Part, rows};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use thalweg_plan::plan::Experiment;
use thalweg_traffic::{Agenda, Randomness};
use thalweg_units::{Span, Time};

/// epoll tokens; those of connections are their ids.
const COMMANDS: u64 = u64::MAX;
const TIMERS: u64 = u64::MAX - 1;

const EVENTS: usize = 1024;

/// Assumed longest time slice of a competing process.
const TURN: Span = Span::from_millis(10);

/// Maximum number of timers per iteration, so that a series that fails and reopens without a pause does not starve
/// sockets and commands.
const TIMERS_IN_A_TURN: usize = 1024;

/// Runs a sender until the command `stop`.
///
/// # Errors
/// Those of [`crate::traffic::play`].
pub(super) fn play(stage: &Stage<'_>, experiment: &Experiment, part: &Part) -> Result<HostReport, Error> {
    let flows = &part.flows;
    limits::prepare(experiment, flows.iter().copied())?;
    algorithm::check(experiment, flows)?;
    let prepared = Prepared::new(experiment, flows)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(limits::exhausted)?;
    watch(&epoll, stage.commands.wakeup(), COMMANDS)?;
    let ports = Arc::new(Ports::new(part.to.values().map(SocketAddr::ip)));

    let clock = stage.wait_for_start()?;
    let timers = Timers::new(clock)?;
    watch(&epoll, timers.fd(), TIMERS)?;
    let beside = prepared.start(experiment, &ports, part, clock)?;
    let series = Randomness::new(experiment).series;
    let agenda = Agenda::new(experiment, series, |flow| flows.contains(&flow));
    let connections = Connections::new(agenda, timers, Arc::clone(&ports), epoll, clock, part.to.clone());
    let end = experiment.duration_ns.map(|duration| Time::ZERO + duration);
    let mut generator = Generator { stage, clock, connections, flows, end, is_over: false };
    generator.run()?;

    let samples = beside.finish()?;
    let Connections { agenda, ended, syn_retransmits, account, .. } = generator.connections;
    let copies = |who: Who| agenda.copy_of(who.series as usize);
    rows::tell(stage.events, &copies, ended, &samples.rows, &syn_retransmits);
    let mut stopped = HostReport { measured: samples.measured, untrustworthy: Vec::new() };
    stopped.measured.extend(account.measured());
    stopped.untrustworthy.extend(samples.untrustworthy);
    stopped.untrustworthy.extend(account.doubts(experiment.rtt_ns, off_cpu(experiment, &part.host)));
    Ok(stopped)
}

/// Estimates the longest time that the scenario keeps the host off its CPU.
fn off_cpu(experiment: &Experiment, host: &str) -> Span {
    let host = experiment.hosts.get(host);
    let turned_away =
        host.and_then(|host| host.cpu).map_or(Span::ZERO, |cpu| cpu.period_ns.saturating_sub(cpu.slice_ns));
    // The fair scheduler may run each co-tenant for a time slice before it runs this process again.
    turned_away + Span(TURN.0 * host.map_or(0, |host| host.co_tenants.into()))
}

fn watch(epoll: &OwnedFd, fd: impl AsFd, name: u64) -> Result<(), Error> {
    epoll::add(epoll, fd, epoll::EventData::new_u64(name), epoll::EventFlags::IN).map_err(limits::exhausted)
}

struct Generator<'a> {
    stage: &'a Stage<'a>,
    clock: Clock,
    connections: Connections,
    flows: &'a [usize],
    end: Option<Time>,
    is_over: bool,
}

impl Generator<'_> {
    fn run(&mut self) -> Result<(), Error> {
        self.connections.enter_first_events(self.flows, self.end);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.connections.timers.arm()?;
            events.clear();
            match epoll::wait(&self.connections.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(Error::new("no-events", format!("epoll fails: {error}"), "check the output of dmesg"));
                }
            }
            let mut has_commands = false;
            for event in &events {
                match event.data.u64() {
                    COMMANDS => has_commands = true,
                    TIMERS => {}
                    id => self.connections.on_socket(id as usize, event.flags)?,
                }
            }
            for _ in 0..TIMERS_IN_A_TURN {
                let Some((due, event)) = self.connections.timers.due() else { break };
                self.on_timer(due, event)?;
            }
            if has_commands && !self.execute_commands() {
                self.finish(self.clock.now());
                return Ok(());
            }
            while let Some(flow) = self.connections.agenda.next_over() {
                let flow = self.connections.agenda.flow(flow).name.clone();
                self.stage.events.send(&HostEvent::Over { flow });
            }
        }
    }

    fn on_timer(&mut self, due: Time, event: GeneratorEvent) -> Result<(), Error> {
        match event {
            GeneratorEvent::End => self.finish(due),
            _ if self.is_over => {}
            GeneratorEvent::Open { series } => self.connections.open(series, due)?,
            GeneratorEvent::Request { id } => self.connections.request(id, due)?,
            GeneratorEvent::Look { id } => self.connections.look(id)?,
            GeneratorEvent::Stop { flow } => self.connections.stop(flow)?,
        }
        Ok(())
    }

    /// Executes pending commands; returns false after `stop`.
    fn execute_commands(&mut self) -> bool {
        while let Some(command) = self.stage.commands.try_next() {
            match command {
                Command::Stop => return false,
                Command::Over { flow } => self.connections.agenda.flow_over(&flow),
                // These have no effect after the start.
                Command::Start { .. } | Command::Configure(_) | Command::Clock => {}
            }
        }
        true
    }

    fn finish(&mut self, at: Time) {
        if !self.is_over {
            self.is_over = true;
            self.connections.finish(at);
        }
    }
}
