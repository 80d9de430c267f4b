//! Remote procedure calls in an open loop: calls arrive at random times and are sent on arrival, whether or not earlier
//! ones have finished. Latency is measured from the arrival, so a slow path does not delay later measurements (no
//! coordinated omission).

use crate::app::message::{Item, Message, Wake};
use crate::streams::{self, Stream};
use thalweg_units::{Bytes, Span, Time};

/// A client of remote procedure calls.
#[derive(Clone, Debug)]
pub struct Rpc {
    mean_gap: Span,
    sizes: Vec<Bytes>,
    connections: u64,
    stream: Stream,
    arrived: u64,
    next_at: Option<Time>,
}

impl Rpc {
    pub(super) fn new(mean_gap: Span, sizes: Vec<Bytes>, connections: u32, stream: Stream) -> Rpc {
        Rpc { mean_gap, sizes, connections: connections.into(), stream, arrived: 0, next_at: None }
    }

    pub(super) fn wake(&mut self, now: Time) -> Wake {
        let mut due = match self.next_at {
            Some(due) => due,
            None => now + streams::exponential(self.mean_gap, &mut self.stream),
        };
        let mut messages = Vec::new();
        while due <= now {
            let size = self.sizes[streams::index(self.sizes.len(), &mut self.stream)];
            let item = Item { number: self.arrived, bitrate: None };
            messages.push(Message { connection: self.arrived % self.connections, size, due, item });
            self.arrived += 1;
            due += streams::exponential(self.mean_gap, &mut self.stream);
        }
        self.next_at = Some(due);
        Wake { messages, next: Some(due) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn arrivals_do_not_depend_on_when_the_client_is_woken() {
        let client = || {
            let sizes = vec![Bytes(100), Bytes(2_000)];
            Rpc::new(Span::from_millis(10), sizes, 3, Stream::seed_from_u64(4))
        };
        let (mut prompt, mut late) = (client(), client());
        let mut arrivals = Vec::new();
        let mut next = prompt.wake(Time::ZERO).next.unwrap();
        while next <= Time(1_000_000_000) {
            let wake = prompt.wake(next);
            arrivals.extend(wake.messages);
            next = wake.next.unwrap();
        }
        late.wake(Time::ZERO);
        assert_eq!(late.wake(Time(1_000_000_000)).messages, arrivals);
        assert!((60..140).contains(&arrivals.len()), "{}", arrivals.len());
        assert!((0..6).all(|call| arrivals[call].connection == call as u64 % 3), "connections take turns");
    }
}
