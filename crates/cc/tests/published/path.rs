//! The simulated path: treatment of packets between sender and receiver, and of their ACKs on the reverse path.

use std::collections::BTreeSet;
use thalweg_units::{MSS, Packets, Probability, Rate, Span, Time};

/// The path and the behaviour of the application.
#[derive(Clone, Debug)]
pub struct Path {
    pub rate: Rate,
    pub rtt: Span,
    pub buffer: Packets,
    /// Token bucket that drops packets: its rate, and its size in packets.
    pub policer: Option<(Rate, Packets)>,
    /// ACKs arrive only at multiples of this time.
    pub ack_grid: Span,
    /// Delay of the ACK of a packet that is sent with no other in flight; the sender knows that it was delayed.
    pub lone_delay: Span,
    /// Time by which the sender's host schedules departures ahead.
    pub lead: Span,
    pub loss: Probability,
    /// Transmissions to drop, by number.
    pub lose: BTreeSet<u64>,
    /// Interval in which the application has nothing to send.
    pub pause: Option<(Time, Time)>,
    /// Number of packets that the application writes per interval; `None` without a limit.
    pub bursts: Option<(Packets, Span)>,
}

impl Path {
    pub fn new(rate: &str, rtt: &str, buffer: u64) -> Path {
        Path {
            rate: rate.parse().expect("a rate"),
            rtt: rtt.parse().expect("a time"),
            buffer: Packets(buffer),
            policer: None,
            ack_grid: Span::ZERO,
            lone_delay: Span::ZERO,
            lead: Span::ZERO,
            loss: Probability::NEVER,
            lose: BTreeSet::new(),
            pause: None,
            bursts: None,
        }
    }

    /// Returns the number of payload packets that fill the path without a queue.
    pub fn bdp(&self) -> f64 {
        self.rate.0 as f64 / 8.0 * self.rtt.as_secs_f64() / MSS.0 as f64
    }
}

#[derive(Debug)]
pub struct Network {
    pub path: Path,
    carried: u64,
    bottleneck_free_at: Time,
    policer_tokens: f64,
    policer_at: Time,
}

impl Network {
    pub fn new(path: Path) -> Network {
        let policer_tokens = path.policer.map_or(0.0, |(_, burst)| burst.0 as f64);
        Network { path, carried: 0, bottleneck_free_at: Time::ZERO, policer_tokens, policer_at: Time::ZERO }
    }

    /// Carries the next packet, sent at `at`, through the policer and the bottleneck to the receiver. Returns the
    /// arrival time of its ACK; `None` if the packet is dropped. `bits` are random.
    pub fn carry(&mut self, at: Time, bits: u64) -> Option<Time> {
        let number = self.carried;
        self.carried += 1;
        if self.path.lose.contains(&number) || self.path.loss.sample(bits) || !self.is_within_policer(at) {
            return None;
        }
        let service = self.path.rate.time_to_send(MSS);
        let waiting = self.bottleneck_free_at.since(at);
        if waiting.0 > service.0 * self.path.buffer.0 {
            return None;
        }
        self.bottleneck_free_at = at.max(self.bottleneck_free_at) + service;
        let arrival = self.bottleneck_free_at + self.path.rtt;
        let grid = self.path.ack_grid.0.max(1);
        Some(Time(arrival.0.div_ceil(grid) * grid))
    }

    fn is_within_policer(&mut self, at: Time) -> bool {
        let Some((rate, burst)) = self.path.policer else { return true };
        let earned = at.since(self.policer_at).as_secs_f64() * rate.0 as f64 / (8 * MSS.0) as f64;
        self.policer_tokens = (self.policer_tokens + earned).min(burst.0 as f64);
        self.policer_at = at;
        let is_within = self.policer_tokens >= 1.0;
        if is_within {
            self.policer_tokens -= 1.0;
        }
        is_within
    }
}
