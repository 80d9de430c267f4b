//! The CPU of a host: the times when the host is on CPU, and the work that it does.
//!
//! ```text
//!   on CPU   ████████              ████████              ████████
//!            |<slice>|             |
//!            |<------ period ----->|         slice / period = the host's share
//! ```
//!
//! The experiment begins at a random moment of a period. Events while the host is off CPU wait. Back on CPU, the host
//! handles them one by one, timers first. Each acknowledgement and each packet sent takes CPU time; work that does not
//! fit into a slice continues in the next. Data of an upload that arrives at the host costs as much as an
//! acknowledgement, including the acknowledgement of the data.
//!
//! With credit ([`credit`]), the host is on CPU whenever it needs to be until the credit is used up. A host has one CPU
//! or two; see [`shared_cpu`](crate::shared_cpu).
//!
//! Not modelled: caches evicted by others, interrupts that wake an idle host, limits of the queue in a network card,
//! and the CPU of the host `receiver`.

mod credit;
mod slices;

use crate::calendar::Alarm;
use crate::packet::Packet;
use credit::Credit;
use slices::Slices;
use std::collections::VecDeque;
use thalweg_plan::plan;
use thalweg_traffic::Stream;
use thalweg_units::{Span, Time};

/// Index of the host's CPU on which the application runs.
pub(crate) const APPLICATION: usize = 0;

/// Work that a host does when it is on CPU.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// The application opens a connection, or wakes up to send messages.
    Open { series: usize },
    /// The application sends its next request.
    Request { connection: usize },
    /// A connection's timer may have expired; unless the host has two CPUs, also: its next burst may be sent.
    Wake { connection: usize },
    /// A connection's next burst may be sent, on a host with two CPUs.
    Pace { connection: usize },
    /// The application writes to a connection, on a host with two CPUs.
    Write { connection: usize },
    /// A receiver's timer may have expired.
    Acknowledge { connection: usize },
    /// A packet has arrived.
    Arrival(Box<Packet>),
}

/// The times when a host is on CPU, and its pending work.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) slices: Slices,
    /// CPU credit; `None` if the host runs only in slices.
    pub(crate) credit: Option<Credit>,
    pub(crate) per_packet: Span,
    pub(crate) per_ack: Span,
    /// Time at which the current work ends.
    pub(crate) free: Time,
    /// Pending work that is handled before arrivals.
    pub(crate) timers: VecDeque<Task>,
    pub(crate) arrivals: VecDeque<Box<Packet>>,
    /// Connections that may have something to send.
    pub(crate) sending: VecDeque<usize>,
    pub(crate) alarm: Alarm,
}

impl Cpu {
    /// Returns the CPUs of a host; empty if the host is always on CPU.
    pub(crate) fn all(host: &plan::Host, stream: &mut Stream) -> Vec<Cpu> {
        host.cpu.map_or_else(Vec::new, |cpu| (0..host.cpus()).map(|_| Cpu::new(&cpu, stream)).collect())
    }

    /// Creates a CPU; the experiment begins at a moment of its period drawn from `stream`.
    pub(crate) fn new(cpu: &plan::Cpu, stream: &mut Stream) -> Cpu {
        Cpu {
            slices: Slices::new(cpu, stream),
            credit: cpu.credit.as_ref().map(Credit::new),
            per_packet: cpu.per_packet_ns,
            per_ack: cpu.per_ack_ns,
            free: Time::ZERO,
            timers: VecDeque::new(),
            arrivals: VecDeque::new(),
            sending: VecDeque::new(),
            alarm: Alarm::default(),
        }
    }

    /// Records that a connection may have data to send.
    pub(crate) fn send(&mut self, connection: usize) {
        if !self.sending.contains(&connection) {
            self.sending.push_back(connection);
        }
    }

    /// Returns the earliest time from `now` on at which the host is on CPU and not busy.
    pub(crate) fn next_turn(&mut self, now: Time) -> Time {
        let at = now.max(self.free);
        if let Some(credit) = &mut self.credit {
            credit.advance(at, &mut self.slices);
            if credit.is_left() {
                return at;
            }
        }
        self.slices.turn(at)
    }

    /// Performs work of `cost`, while the host is on CPU.
    pub(crate) fn work(&mut self, now: Time, cost: Span) {
        let mut has_credit = false;
        if let Some(credit) = &mut self.credit {
            credit.advance(now, &mut self.slices);
            has_credit = credit.is_left();
            credit.spend(cost);
        }
        self.free = if has_credit { now + cost } else { self.slices.finish(now, cost) };
    }

    pub(crate) fn add(&mut self, task: Task) {
        match task {
            Task::Arrival(packet) => self.arrivals.push_back(packet),
            task => self.timers.push_back(task),
        }
    }

    /// Whether the CPU has a packet of a connection to handle, or may have one to send.
    pub(crate) fn is_working_for(&self, connection: usize) -> bool {
        let mut arrivals = self.arrivals.iter().map(|packet| packet.connection());
        self.sending.contains(&connection) || arrivals.any(|of| of == Some(connection))
    }

    pub(crate) fn next_task(&mut self) -> Option<Task> {
        self.timers.pop_front().or_else(|| self.arrivals.pop_front().map(Task::Arrival))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sending.is_empty() && self.timers.is_empty() && self.arrivals.is_empty()
    }
}

#[cfg(test)]
mod tests;
