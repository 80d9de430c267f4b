//! The CPU of a host: when the host has it, and what it does with it.
//!
//! ```text
//!   on CPU   ████████              ████████              ████████
//!            |<slice>|             |
//!            |<------ period ----->|         slice / period = the host's share
//! ```
//!
//! The first slice begins at a random moment. What comes while the host is away waits: timers that run out, the
//! application, acknowledgements. Back on CPU, the host does one thing after another, timers first, because their interrupt
//! goes before the network's. An acknowledgement is handled when its turn comes, and its round-trip time ends then; what
//! may be sent upon it leaves before the next one is looked at. Each acknowledgement and each packet sent takes its time
//! on CPU; what does not fit into a slice goes on in the next. Data that comes to the host, of a flow that goes up, is handled
//! as an acknowledgement is, and costs as much, its own acknowledgement included.
//!
//! Left out: caches that the others have emptied, interrupts that find the host asleep, limits of what waits in a network
//! card, and the CPU of the host `receiver`. UDP sources need no CPU.

use crate::calendar::Alarm;
use crate::packet::Packet;
use std::collections::VecDeque;
use thalweg_plan::plan;
use thalweg_traffic::{Stream, up_to};
use thalweg_units::{Span, Time};

/// Something that a host does when it has its CPU.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// The application opens a connection.
    Open { series: usize },
    /// The application sends its next request.
    Request { connection: usize },
    /// A connection's timer has run out, or its next burst may leave.
    Wake { connection: usize },
    /// A connection's delayed acknowledgement is due.
    Acknowledge { connection: usize },
    /// A packet has come.
    Arrival(Box<Packet>),
}

/// When a host is on CPU, and what waits for that.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) slice: Span,
    pub(crate) period: Span,
    pub(crate) per_packet: Span,
    pub(crate) per_ack: Span,
    /// How far the first period is over when the experiment begins.
    pub(crate) phase: Span,
    /// When the work done so far is over.
    pub(crate) free: Time,
    /// What waits and goes before arrivals.
    pub(crate) timers: VecDeque<Task>,
    pub(crate) arrivals: VecDeque<Box<Packet>>,
    /// Connections that may have something to send.
    pub(crate) sending: VecDeque<usize>,
    pub(crate) alarm: Alarm,
}

impl Cpu {
    /// A CPU whose first slice begins at a moment drawn from `stream`.
    pub(crate) fn new(cpu: &plan::Cpu, stream: &mut Stream) -> Cpu {
        Cpu {
            slice: cpu.slice_ns,
            period: cpu.period_ns.max(cpu.slice_ns),
            per_packet: cpu.per_packet_ns,
            per_ack: cpu.per_ack_ns,
            phase: up_to(cpu.period_ns, stream),
            free: Time::ZERO,
            timers: VecDeque::new(),
            arrivals: VecDeque::new(),
            sending: VecDeque::new(),
            alarm: Alarm::default(),
        }
    }

    /// A connection may have something to send.
    pub(crate) fn send(&mut self, connection: usize) {
        if !self.sending.contains(&connection) {
            self.sending.push_back(connection);
        }
    }

    /// How far the period that `at` falls in is over.
    fn elapsed(&self, at: Time) -> Span {
        Span((at.0 + self.phase.0) % self.period.0)
    }

    /// The earliest moment from `now` on at which the host is on CPU and free.
    pub(crate) fn next_turn(&self, now: Time) -> Time {
        let at = now.max(self.free);
        let elapsed = self.elapsed(at);
        if elapsed < self.slice { at } else { at + self.period.saturating_sub(elapsed) }
    }

    /// The host, on CPU, works for `cost`.
    pub(crate) fn work(&mut self, now: Time, cost: Span) {
        let elapsed = self.elapsed(now);
        let done = elapsed + cost;
        let (slices, rest) = (done.0 / self.slice.0, done.0 % self.slice.0);
        self.free = now + Span(slices * self.period.0 + rest).saturating_sub(elapsed);
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
