//! The random delay of packets that a host sends: each waits for a short random time, and none overtakes another.

use crate::streams::{self, Stream};
use std::collections::VecDeque;
use thalweg_units::{Span, Time};

/// Packets that are leaving a host.
#[derive(Debug)]
pub struct Outbox<P> {
    jitter: Span,
    stream: Stream,
    /// In order of departure, which is the order of entry.
    waiting: VecDeque<(Time, P)>,
}

impl<P> Outbox<P> {
    /// Packets wait up to `jitter`, drawn from `stream`.
    pub fn new(jitter: Span, stream: Stream) -> Outbox<P> {
        Outbox { jitter, stream, waiting: VecDeque::new() }
    }

    /// Takes a packet; returns it if it may leave at once.
    #[inline] // Otherwise each packet is copied once more, on hosts that only forward it.
    pub fn pass(&mut self, now: Time, packet: P) -> Option<P> {
        if self.jitter == Span::ZERO {
            return Some(packet);
        }
        let own = now + streams::up_to(self.jitter, &mut self.stream);
        let departure = self.waiting.back().map_or(own, |(last, _)| own.max(*last));
        self.waiting.push_back((departure, packet));
        None
    }

    /// Returns the departure of the next packet.
    pub fn next_wake(&self) -> Option<Time> {
        self.waiting.front().map(|(at, _)| *at)
    }

    /// Returns the next packet that leaves by `now`.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        self.next_wake().filter(|at| *at <= now)?;
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// Packets that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }
}
