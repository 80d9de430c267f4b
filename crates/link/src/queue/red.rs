//! RED (random early detection; S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993), as in Linux.
//!
//! The average queue is an exponentially weighted moving average, taken at each arrival. Below `min` every packet
//! passes; from `max` on every packet is dropped or marked; between the two, the distance between hits is uniformly
//! distributed, so that drops are spread evenly (section 7, method 2).

use super::fifo::Fifo;
use super::item::Item;
use super::random::Dice;
use super::tally::Tally;
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Rate, Time};

/// Maximum shift of the weight: the minimum weight of a sample is 2^-31.
const MAX_WEIGHT_SHIFT: u32 = 31;

/// A queue under RED.
#[derive(Debug)]
pub(crate) struct Red<P> {
    items: Fifo<P>,
    min: f64,
    max: f64,
    probability: f64,
    /// Weight of a sample in the average.
    weight: f64,
    /// Transmission time of an average-sized packet at `bandwidth_bps`, in seconds.
    packet_time: f64,
    ecn: bool,
    average: f64,
    /// Packets since the last drop or mark; `None` while the average is not between the thresholds.
    since_hit: Option<u64>,
    /// Value of `since_hit * (average - min)` at which the next drop or mark occurs; drawn after each one.
    distance: f64,
    idle_since: Option<Time>,
    dice: Dice,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Pass,
    Hit,
}

impl<P: Packet> Red<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> Red<P> {
        let Queue::Red { min_bytes, max_bytes, avpkt_bytes, burst, probability, bandwidth_bps, ecn } = *queue else {
            panic!("not red")
        };
        Red {
            items: Fifo::new(buffer),
            min: min_bytes.0 as f64,
            max: max_bytes.0 as f64,
            probability: probability.as_f64(),
            weight: weight(min_bytes, burst, avpkt_bytes),
            packet_time: Rate(bandwidth_bps.0.max(1)).time_to_send(avpkt_bytes).as_secs_f64(),
            ecn,
            average: 0.0,
            since_hit: None,
            distance: 0.0,
            idle_since: Some(Time::ZERO),
            dice: Dice::new(seed),
        }
    }

    pub fn push(&mut self, now: Time, mut item: Item<P>, tally: &mut Tally) -> bool {
        self.average_at(now);
        if self.decide() == Action::Hit && !(self.ecn && tally.try_mark(&mut item)) {
            tally.drop_early(item.number);
            return false;
        }
        let number = item.number;
        let fits = self.items.push(item);
        if !fits {
            tally.drop_at_limit(number);
        }
        fits
    }

    pub fn pop(&mut self, now: Time, _tally: &mut Tally) -> Option<Item<P>> {
        let item = self.items.pop();
        if item.is_none() && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        item
    }

    /// Updates the average with the queue size. After idle time, the average decays as if packets of average size had
    /// arrived at an empty queue.
    fn average_at(&mut self, now: Time) {
        match self.idle_since.take() {
            Some(since) => {
                let packets = now.since(since).as_secs_f64() / self.packet_time;
                self.average *= (1.0 - self.weight).powf(packets);
            }
            None => self.average += self.weight * (self.items.bytes().0 as f64 - self.average),
        }
    }

    fn decide(&mut self) -> Action {
        if self.average < self.min {
            self.since_hit = None;
            return Action::Pass;
        }
        if self.average >= self.max {
            self.since_hit = None;
            return Action::Hit;
        }
        let Some(since_hit) = self.since_hit else {
            self.restart();
            return Action::Pass;
        };
        self.since_hit = Some(since_hit + 1);
        if (self.average - self.min) * (since_hit + 1) as f64 >= self.distance {
            self.restart();
            return Action::Hit;
        }
        Action::Pass
    }

    fn restart(&mut self) {
        self.since_hit = Some(0);
        let range = (self.max - self.min).max(1.0);
        self.distance =
            if self.probability > 0.0 { self.dice.unit() * range / self.probability } else { f64::INFINITY };
    }

    pub fn packets(&self) -> Packets {
        self.items.packets()
    }

    pub fn bytes(&self) -> Bytes {
        self.items.bytes()
    }
}

/// Returns the largest power of two up to 1/2 at which a burst of this number of packets into an empty queue leaves the
/// average below `min` (section 6, equation 3; tc-red(8)).
fn weight(min: Bytes, burst: u32, avpkt: Bytes) -> f64 {
    let burst = f64::from(burst);
    let excess = burst + 1.0 - min.0 as f64 / avpkt.0.max(1) as f64;
    let weights = (1..=MAX_WEIGHT_SHIFT).map(|shift| 0.5_f64.powi(shift as i32));
    let fits = |weight: &f64| excess <= (1.0 - (1.0 - weight).powf(burst)) / weight;
    weights.clone().find(fits).or(weights.clone().next_back()).unwrap_or(0.5)
}
