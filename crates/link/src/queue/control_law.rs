//! CoDel's state machine and control law (RFC 8289), for one queue.
//!
//! ```text
//!               sojourn >= target for an interval: drop
//!   not dropping ─────────────────────────────────────► dropping: drop again after interval / sqrt(count)
//!                ◄─────────────────────────────────────
//!               sojourn < target, or the queue is short
//! ```
//!
//! Times are in nanoseconds; Linux counts them in units of 1024 ns. The inverse square root is computed as in Linux: 16
//! bits, one step of Newton's method per drop (RFC 8289, section 5.7 allows an approximation). At the second drop it is
//! 0.5 instead of 0.71.

use super::item::Item;
use super::tally::Tally;
use crate::packet::Packet;
use thalweg_units::{Bytes, Span, Time};

/// Backlog up to which no packet is dropped: a full frame (RFC 8289, section 5.6: "maxpacket").
const MAX_PACKET: Bytes = Bytes(1514);

/// The previous drop rate is resumed until this number of intervals after the time of its next drop (RFC 8289, section
/// 5.5).
const RESUME_INTERVALS: u64 = 16;

/// Parameters of the control law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub target: Span,
    pub interval: Span,
    pub ecn: bool,
    pub ce_threshold: Option<Span>,
}

/// CoDel state of one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// Number of drops and marks since drop state began, continued from the previous drop state if that was recent;
    /// plus drops at the limit (fq_codel).
    count: u32,
    /// `count` at the start of drop state.
    last_count: u32,
    is_dropping: bool,
    /// 65536 / sqrt(count), approximately.
    inverse_sqrt: u16,
    /// Time at which the sojourn time will have been above the target for an interval.
    first_above: Option<Time>,
    drop_next: Time,
}

impl Default for State {
    fn default() -> State {
        State { count: 0, last_count: 0, is_dropping: false, inverse_sqrt: 0, first_above: None, drop_next: Time::ZERO }
    }
}

impl State {
    /// Counts packets that were dropped because the limit was exceeded, so that the control law drops more often
    /// (Linux).
    pub fn count_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Removes the next packet to send. `pop` removes the head of the queue and returns it with the bytes that remain.
    pub fn pop<P: Packet>(
        &mut self,
        law: &Law,
        now: Time,
        tally: &mut Tally,
        pop: &mut impl FnMut() -> Option<(Item<P>, Bytes)>,
    ) -> Option<Item<P>> {
        let (mut item, mut is_late) = self.next(law, now, pop);
        if item.is_none() {
            self.is_dropping = false;
            return None;
        }
        if self.is_dropping {
            if !is_late {
                self.is_dropping = false;
            }
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.refine_sqrt();
                if law.ecn && item.as_mut().is_some_and(|item| tally.try_mark(item)) {
                    self.drop_next = self.after(law, self.drop_next);
                    break;
                }
                tally.drop_early(item.as_ref().map_or(0, |item| item.number));
                (item, is_late) = self.next(law, now, pop);
                if is_late {
                    self.drop_next = self.after(law, self.drop_next);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if is_late {
            if !(law.ecn && item.as_mut().is_some_and(|item| tally.try_mark(item))) {
                tally.drop_early(item.as_ref().map_or(0, |item| item.number));
                item = self.next(law, now, pop).0;
            }
            self.enter_dropping(law, now);
        }
        if let (Some(threshold), Some(item)) = (law.ce_threshold, &mut item) {
            if item.sojourn(now) > threshold {
                tally.try_mark(item);
            }
        }
        item
    }

    /// Enters drop state, with the previous drop rate if that was recent (RFC 8289, section 5.5).
    fn enter_dropping(&mut self, law: &Law, now: Time) {
        self.is_dropping = true;
        let drops_last_time = self.count.wrapping_sub(self.last_count);
        let resumes_until = self.drop_next + Span(law.interval.0.saturating_mul(RESUME_INTERVALS));
        if drops_last_time > 1 && now < resumes_until {
            self.count = drops_last_time;
            self.refine_sqrt();
        } else {
            self.count = 1;
            self.inverse_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(law, now);
    }

    /// Removes the head. Returns it, and whether it may be dropped (RFC 8289, section 5.6, "dodequeue").
    fn next<P: Packet>(
        &mut self,
        law: &Law,
        now: Time,
        pop: &mut impl FnMut() -> Option<(Item<P>, Bytes)>,
    ) -> (Option<Item<P>>, bool) {
        let Some((item, backlog)) = pop() else {
            self.first_above = None;
            return (None, false);
        };
        if item.sojourn(now) < law.target || backlog <= MAX_PACKET {
            self.first_above = None;
            return (Some(item), false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + law.interval);
                (Some(item), false)
            }
            Some(first_above) => (Some(item), now > first_above),
        }
    }

    /// Returns the time of the next drop by the control law (RFC 8289, section 5.6): `from + interval / sqrt(count)`.
    fn after(&self, law: &Law, from: Time) -> Time {
        from + Span(((u128::from(law.interval.0) * u128::from(self.inverse_sqrt)) >> 16) as u64)
    }

    /// Performs one step of Newton's method: `x * (3 - count * x^2) / 2`, in 32 bits of fraction.
    fn refine_sqrt(&mut self) {
        let x = u64::from(self.inverse_sqrt) << 16;
        let squared = (x * x) >> 32;
        let factor = (3_u64 << 32).saturating_sub(u64::from(self.count) * squared) >> 2;
        self.inverse_sqrt = ((factor * x) >> 47) as u16;
    }
}
