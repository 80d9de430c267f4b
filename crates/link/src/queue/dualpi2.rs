//! Dual-queue coupled AQM with PI2 (RFC 9332, appendix A), as Linux 6.17 and later implement it.
//!
//! ```text
//!   ECT(1), CE ─► L queue ─► mark above step_thresh, or with k * p ──────┐
//!                                                                        ├─► weighted round robin, L first
//!   others ─────► C queue ─► drop or mark with probability p^2 ──────────┘
//! ```
//!
//! `p` is the base probability of a PI controller that keeps the delay at the target: the time in the queue of the head
//! of L or C, whichever is longer (appendix A.1). When `k * p` exceeds 1, both queues drop with probability `p^2`,
//! including ECN-capable packets (section 4.2).

use super::fifo::Fifo;
use super::item::Item;
use super::random::Dice;
use super::tally::{Tally, limit_packets};
use crate::packet::Packet;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, Ecn, MTU, Packets, Span, Time};

/// Minimum backlog for a probabilistic drop or mark: two full packets.
const MIN_BACKLOG: Bytes = Bytes(2 * MTU.0);

/// Two coupled queues.
#[derive(Debug)]
pub(crate) struct Dualpi2<P> {
    low_latency: Fifo<P>,
    classic: Fifo<P>,
    limit: Packets,
    target: Span,
    tupdate: Span,
    alpha: f64,
    beta: f64,
    step: Span,
    coupling: f64,
    /// Shares of the capacity, in percent, while both queues are busy.
    low_latency_share: i64,
    classic_share: i64,
    /// While both queues have packets, C is served if this is positive, otherwise L (appendix A.1: "scheduler").
    classic_credit: i64,
    base: f64,
    delay_before: Span,
    next_update: Time,
    dice: Dice,
}

impl<P: Packet> Dualpi2<P> {
    /// # Panics
    /// If `queue` is a different discipline.
    pub fn new(queue: &Queue, buffer: Buffer, seed: u64) -> Dualpi2<P> {
        let Queue::Dualpi2 { target_ns, tupdate_ns, alpha, beta, step_thresh_ns, coupling_factor, classic_protection } =
            *queue
        else {
            panic!("not dualpi2")
        };
        let classic_share = i64::from(classic_protection.min(100));
        let mut queue = Dualpi2 {
            low_latency: Fifo::unlimited(),
            classic: Fifo::unlimited(),
            limit: limit_packets(buffer),
            target: target_ns,
            tupdate: tupdate_ns,
            alpha,
            beta,
            step: step_thresh_ns,
            coupling: f64::from(coupling_factor),
            low_latency_share: 100 - classic_share,
            classic_share,
            classic_credit: 0,
            base: 0.0,
            delay_before: Span::ZERO,
            next_update: Time::ZERO + tupdate_ns,
            dice: Dice::new(seed),
        };
        queue.reset_credit();
        queue
    }

    pub fn push(&mut self, now: Time, item: Item<P>, tally: &mut Tally) -> bool {
        self.catch_up(now);
        if self.packets() >= self.limit {
            tally.drop_at_limit(item.number);
            return false;
        }
        match item.packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => self.low_latency.push(item),
            Ecn::Ect0 | Ecn::NotEct => self.classic.push(item),
        }
    }

    pub fn pop(&mut self, now: Time, tally: &mut Tally) -> Option<Item<P>> {
        self.catch_up(now);
        loop {
            let serves_low_latency =
                !self.low_latency.is_empty() && (self.classic.is_empty() || self.classic_credit <= 0);
            let queue = if serves_low_latency { &mut self.low_latency } else { &mut self.classic };
            let Some(mut item) = queue.pop() else {
                self.reset_credit();
                return None;
            };
            if self.bytes() >= MIN_BACKLOG && self.drops(serves_low_latency, &mut item, tally) {
                tally.drop_early(item.number);
                continue;
            }
            if serves_low_latency && item.packet.ecn() != Ecn::Ce && item.sojourn(now) > self.step {
                tally.try_mark(&mut item);
            }
            self.charge(serves_low_latency, item.size);
            if self.packets() == Packets(0) {
                self.reset_credit();
            }
            return Some(item);
        }
    }

    /// Charges the scheduler for a sent packet with the share of the other queue, but only while the other queue is not
    /// empty.
    fn charge(&mut self, is_low_latency: bool, size: Bytes) {
        let size = i64::try_from(size.0).unwrap_or(i64::MAX / 200);
        if is_low_latency && !self.classic.is_empty() {
            self.classic_credit += size * self.classic_share;
        } else if !is_low_latency && !self.low_latency.is_empty() {
            self.classic_credit -= size * self.low_latency_share;
        }
    }

    /// Applies the probabilities to a departing packet. Returns whether to drop it.
    fn drops(&mut self, is_low_latency: bool, item: &mut Item<P>, tally: &mut Tally) -> bool {
        let coupled = self.coupling * self.base;
        let is_overloaded = coupled > 1.0;
        if is_low_latency && !is_overloaded {
            if item.packet.ecn() != Ecn::Ce && self.dice.is_below(coupled) {
                tally.try_mark(item);
            }
            return false;
        }
        // Probability p^2: two random numbers are both below p (RFC 9332, section 2.1).
        let is_hit = self.dice.is_below(self.base) && self.dice.is_below(self.base);
        if is_hit {
            return is_overloaded || !tally.try_mark(item);
        }
        if is_low_latency {
            tally.try_mark(item);
        }
        false
    }

    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let head = |queue: &Fifo<P>| queue.front().map_or(Span::ZERO, |item| item.sojourn(at));
            let delay = head(&self.low_latency).max(head(&self.classic));
            let deviation = delay.as_secs_f64() - self.target.as_secs_f64();
            let change = delay.as_secs_f64() - self.delay_before.as_secs_f64();
            self.base = (self.base + self.alpha * deviation + self.beta * change).clamp(0.0, 1.0);
            self.delay_before = delay;
            self.next_update = at + self.tupdate;
            if delay == Span::ZERO && self.base <= 0.0 {
                let missed = now.since(self.next_update.min(now)).0 / self.tupdate.0;
                self.next_update += Span(self.tupdate.0 * missed);
            }
        }
    }

    fn reset_credit(&mut self) {
        self.classic_credit = (self.classic_share - self.low_latency_share) * MTU.0 as i64;
    }

    pub fn packets(&self) -> Packets {
        self.low_latency.packets() + self.classic.packets()
    }

    pub fn bytes(&self) -> Bytes {
        self.low_latency.bytes() + self.classic.bytes()
    }
}
