//! PIE (proportional integral controller enhanced, RFC 8033). Its delay is the sojourn time of departing packets, as in
//! Linux.
//!
//! The drop probability is updated from the delay every `tupdate` (section 4.2):
//!
//! ```text
//!   p += alpha * (delay - target) + beta * (delay - delay before)
//! ```
//!
//! An arriving packet is dropped with that probability; a sum of probabilities evens out the spacing of drops (section
//! 5.4).

use super::fifo::Fifo;
use super::item::Item;
use super::random::Dice;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Packets, Span, Time};

/// Bursts of this length after idle time pass without drops (RFC 8033, section 4.4: MAX_BURST).
const BURST_ALLOWANCE: Span = Span::from_millis(150);
/// Minimum backlog for a drop: two full frames (RFC 8033, section 4.1).
const MIN_BACKLOG: Bytes = Bytes(2 * 1514);
/// Maximum step of the probability while it is at least 10 % (RFC 8033, section 5.5).
const MAX_STEP: f64 = 0.02;
/// Delay above which the probability rises by another 2 % at each update (Linux).
const LONG_DELAY: Span = Span::from_millis(250);
/// Factor applied to the probability at each update while the queue is empty (RFC 8033, section 4.2; Linux: 1 - 1/64).
const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Sums of probabilities below which a packet is never dropped, and above which it always is (RFC 8033, section 5.4).
const SUM_BEFORE_DROP: f64 = 0.85;
const SUM_FORCING_DROP: f64 = 8.5;
/// Maximum drop probability at which ECN-capable packets are marked (RFC 8033, section 5.1).
const MAX_MARKING_PROBABILITY: f64 = 0.1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub target: Span,
    pub tupdate: Span,
    /// Weights in 1/s.
    pub alpha: f64,
    pub beta: f64,
    /// Maximum drop probability at which ECN-capable packets are marked; `None`: they are dropped.
    pub max_marking_probability: Option<f64>,
}

impl Settings {
    /// Creates the settings. `alpha` and `beta` are in sixteenths of 1/s, as in Linux.
    pub fn new(target: Span, tupdate: Span, alpha: u32, beta: u32, max_marking_probability: Option<f64>) -> Settings {
        let (alpha, beta) = (f64::from(alpha) / 16.0, f64::from(beta) / 16.0);
        Settings { target, tupdate, alpha, beta, max_marking_probability }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Controller {
    probability: f64,
    /// Sum of the probabilities of packets since a drop or a mark last reset it.
    sum: f64,
    burst_left: Span,
    delay: Span,
    delay_before: Span,
    last_departure: Option<Time>,
}

impl Default for Controller {
    fn default() -> Controller {
        Controller {
            probability: 0.0,
            sum: 0.0,
            burst_left: BURST_ALLOWANCE,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            last_departure: None,
        }
    }
}

impl Controller {
    /// Marks, drops or accepts an arriving packet. Returns whether it joins the queue.
    pub fn admits<P: Packet>(
        &mut self,
        settings: &Settings,
        backlog: Bytes,
        item: &mut Item<P>,
        tally: &mut Tally,
        dice: &mut Dice,
    ) -> bool {
        if !self.hits(settings, backlog, dice) {
            return true;
        }
        if settings.max_marking_probability.is_some_and(|max| self.probability <= max) && tally.try_mark(item) {
            return true;
        }
        self.note_drop();
        tally.drop_early(item.number);
        false
    }

    /// Whether to drop or mark the arriving packet (RFC 8033, sections 4.1 and 5.4).
    fn hits(&mut self, settings: &Settings, backlog: Bytes, dice: &mut Dice) -> bool {
        if self.burst_left > Span::ZERO {
            return false;
        }
        let is_calm = self.delay < settings.target.scale(1, 2) && self.probability < 0.2;
        if is_calm || backlog < MIN_BACKLOG {
            return false;
        }
        self.sum = if self.probability > 0.0 { self.sum + self.probability } else { 0.0 };
        if self.sum < SUM_BEFORE_DROP {
            return false;
        }
        if self.sum >= SUM_FORCING_DROP {
            return true;
        }
        let hits = dice.is_below(self.probability);
        if hits {
            self.sum = 0.0;
        }
        hits
    }

    /// Records that a packet was dropped on arrival.
    pub fn note_drop(&mut self) {
        self.sum = 0.0;
    }

    /// Records that a packet has left the queue. `backlog` is what remains.
    pub fn note_departure(&mut self, now: Time, sojourn: Span, backlog: Bytes) {
        let since_last = self.last_departure.map_or(Span::ZERO, |last| now.since(last));
        self.last_departure = Some(now);
        self.delay = if backlog == Bytes::ZERO { Span::ZERO } else { sojourn };
        self.burst_left = self.burst_left.saturating_sub(since_last);
    }

    /// Updates the probability from the delay (RFC 8033, sections 4.2 and 5.5).
    pub fn update(&mut self, settings: &Settings, backlog: Bytes) {
        let (delay, before) = (self.delay, self.delay_before);
        // With a backlog, a delay of zero means that it is not known yet.
        let is_known = delay > Span::ZERO || backlog == Bytes::ZERO;
        let weight = self.weight();
        let deviation = delay.as_secs_f64() - settings.target.as_secs_f64();
        let change = delay.as_secs_f64() - before.as_secs_f64();
        let mut step = weight * (settings.alpha * deviation + settings.beta * change);
        if step > MAX_STEP && self.probability >= 0.1 {
            step = MAX_STEP;
        }
        if delay > LONG_DELAY {
            step += MAX_STEP;
        }
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        if delay == Span::ZERO && before == Span::ZERO && is_known {
            self.probability *= DECAY;
        }
        let half = settings.target.scale(1, 2);
        if delay < half && before < half && self.probability <= 0.0 {
            self.burst_left = BURST_ALLOWANCE;
            self.sum = 0.0;
            self.last_departure = None;
        }
        self.delay_before = delay;
    }

    /// Whether the probability and the last two delays are zero.
    pub fn is_idle(&self) -> bool {
        self.probability <= 0.0 && self.delay == Span::ZERO && self.delay_before == Span::ZERO
    }

    /// Returns the factor that scales the step for small probabilities (RFC 8033, section 4.2): 1/2 below 10 %, 1/8
    /// below 1 %, and so on.
    fn weight(&self) -> f64 {
        const THRESHOLDS: [f64; 5] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
        if self.probability >= 0.1 {
            return 1.0;
        }
        THRESHOLDS.iter().filter(|threshold| self.probability < **threshold).fold(0.5, |weight, _| weight / 4.0)
    }
}

/// A queue under PIE.
#[derive(Debug)]
pub(crate) struct Pie<P> {
    items: Fifo<P>,
    limit: Packets,
    settings: Settings,
    controller: Controller,
    dice: Dice,
    next_update: Time,
}

impl<P: Packet> Pie<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> Pie<P> {
        let Queue::Pie { target_ns, tupdate_ns, alpha, beta, ecn } = *queue else { panic!("not pie") };
        Pie {
            items: Fifo::unlimited(),
            limit: limit_packets(buffer),
            settings: Settings::new(target_ns, tupdate_ns, alpha, beta, ecn.then_some(MAX_MARKING_PROBABILITY)),
            controller: Controller::default(),
            dice: Dice::new(seed),
            next_update: Time::ZERO + tupdate_ns,
        }
    }

    pub fn push(&mut self, now: Time, mut item: Item<P>, tally: &mut Tally) -> bool {
        self.catch_up(now);
        if self.items.packets() >= self.limit {
            self.controller.note_drop();
            tally.drop_at_limit(item.number);
            return false;
        }
        let backlog = self.items.bytes();
        self.controller.admits(&self.settings, backlog, &mut item, tally, &mut self.dice) && self.items.push(item)
    }

    pub fn pop(&mut self, now: Time, _tally: &mut Tally) -> Option<Item<P>> {
        self.catch_up(now);
        let item = self.items.pop()?;
        self.controller.note_departure(now, item.sojourn(now), self.items.bytes());
        Some(item)
    }

    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            self.controller.update(&self.settings, self.items.bytes());
            self.next_update += self.settings.tupdate;
            if self.controller.is_idle() && self.items.is_empty() {
                // Nothing changes until a packet arrives.
                let missed = now.since(self.next_update.min(now)).0 / self.settings.tupdate.0;
                self.next_update += Span(self.settings.tupdate.0 * missed);
            }
        }
    }

    pub fn packets(&self) -> Packets {
        self.items.packets()
    }

    pub fn bytes(&self) -> Bytes {
        self.items.bytes()
    }
}
