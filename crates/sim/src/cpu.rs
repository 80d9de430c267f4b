//! The CPU of a host: the times when the host has it, and the work that it does.
//!
//! ```text
//!   on CPU   ████████              ████████              ████████
//!            |<slice>|             |
//!            |<------ period ----->|         slice / period = the host's share
//! ```
//!
//! The first slice begins at a random moment. Events while the host is off CPU wait: expired timers, the application,
//! acknowledgements. Back on CPU, the host handles one event after another, timers first, because their interrupt
//! precedes the network's. The round-trip time of an acknowledgement ends when it is handled; packets that it releases
//! leave before the next one is handled. Each acknowledgement and each packet sent takes CPU time; work that does not
//! fit into a slice continues in the next. Data that comes to the host, of a flow that goes up, is handled as an
//! acknowledgement is, and costs as much, its own acknowledgement included.
//!
//! With credit ([`credit`]), the host is on CPU whenever it needs to be until the credit is used up.
//!
//! A host has one CPU or two; [`shared_cpu`](crate::shared_cpu) says what runs on which.
//!
//! Left out: caches that the others have emptied, interrupts that find the host asleep, limits of what waits in a
//! network card, and the CPU of the host `receiver`. UDP sources need no CPU.

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
    /// The application opens a connection.
    Open { series: usize },
    /// The application sends its next request.
    Request { connection: usize },
    /// A connection's timer has run out; on a host with one CPU also: its next burst may leave.
    Wake { connection: usize },
    /// A connection's next burst may leave, on a host with two CPUs.
    Pace { connection: usize },
    /// The application writes to a connection, on a host with two CPUs.
    Write { connection: usize },
    /// A connection's delayed acknowledgement is due.
    Acknowledge { connection: usize },
    /// A packet has arrived.
    Arrival(Box<Packet>),
}

/// The times when a host is on CPU, and the work that waits.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) slices: Slices,
    /// Credit; none: the host has slices only.
    pub(crate) credit: Option<Credit>,
    pub(crate) per_packet: Span,
    pub(crate) per_ack: Span,
    /// End of the current work.
    pub(crate) free: Time,
    /// Work that precedes arrivals.
    pub(crate) timers: VecDeque<Task>,
    pub(crate) arrivals: VecDeque<Box<Packet>>,
    /// Connections that may have something to send.
    pub(crate) sending: VecDeque<usize>,
    pub(crate) alarm: Alarm,
}

impl Cpu {
    /// The CPUs of a host; none: it has one whenever it needs one.
    pub(crate) fn all(host: &plan::Host, stream: &mut Stream) -> Vec<Cpu> {
        host.cpu.map_or_else(Vec::new, |cpu| (0..host.cpus()).map(|_| Cpu::new(&cpu, stream)).collect())
    }

    /// A CPU whose first slice begins at a moment drawn from `stream`.
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

    /// A connection may have data to send.
    pub(crate) fn send(&mut self, connection: usize) {
        if !self.sending.contains(&connection) {
            self.sending.push_back(connection);
        }
    }

    /// The earliest moment from `now` on at which the host is on CPU and free.
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

    /// The host, on CPU, works for `cost`.
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

    /// Whether there is unfinished work for a connection, which the next slice resumes.
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
