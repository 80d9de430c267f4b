//! The random delay of packets that a host sends: each packet waits for a short random time, and packets are not
//! reordered.

use crate::streams::{self, Stream};
use std::collections::VecDeque;
use thalweg_units::{Span, Time};

/// Packets that wait to leave a host.
#[derive(Debug)]
pub struct Outbox<P> {
    jitter: Span,
    stream: Stream,
    /// Packets in order of departure, which is the order of arrival.
    waiting: VecDeque<(Time, P)>,
}

impl<P> Outbox<P> {
    /// Creates an outbox in which packets wait up to `jitter`, drawn from `stream`.
    pub fn new(jitter: Span, stream: Stream) -> Outbox<P> {
        Outbox { jitter, stream, waiting: VecDeque::new() }
    }

    /// Adds a packet. Returns it if it may leave immediately.
    #[inline] // Avoids an additional copy of each packet if there is no jitter.
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

    /// Returns the next packet that is due at `now`.
    pub fn poll(&mut self, now: Time) -> Option<P> {
        self.next_wake().filter(|at| *at <= now)?;
        self.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// Returns the number of waiting packets.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }
}
