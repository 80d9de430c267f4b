//! CPU credit: CPU time that a host may use above its baseline.
//!
//! ```text
//!   balance ────╲                     accrues at the baseline, up to a maximum;
//!                ╲                    spent by the host's other load and by packets
//!                 ╲____________
//!   on CPU  ██████████   █   █   █    whenever needed; then one slice per period
//! ```
//!
//! The host's other load uses the share `load` of the time on CPU. Of the time for packets, the share `load` displaces
//! the load; only the rest costs credit. When the balance is used up, the host is on CPU only in slices. Once the
//! balance covers a slice, or has reached a maximum below that, the host is again on CPU whenever it needs to be.
//! Slices cause no debt.
//!
//! EC2's burstable instances and Xen's credit scheduler are forms of this; docs/concepts/cpu-contention.md has their
//! parameters. Not modelled: EC2 lowers the share gradually when the balance is nearly used up.

use super::slices::{MILLION, Slices};
use thalweg_plan::plan;
use thalweg_units::{Span, Time};

#[derive(Debug)]
pub(crate) struct Credit {
    /// The balance in millionths of a nanosecond, so that shares in millionths are exact.
    balance: i128,
    max: i128,
    baseline_ppm: i128,
    load_ppm: i128,
    /// Whether the host runs only in slices.
    is_used_up: bool,
    /// Time up to which the balance is computed. If the balance is used up: start of the current period, or of the
    /// experiment.
    at: Time,
    /// CPU time that packets have taken in the current period, while the balance is used up.
    spent: Span,
}

impl Credit {
    pub(super) fn new(credit: &plan::Credit) -> Credit {
        let balance = scaled(credit.initial_ns);
        Credit {
            balance,
            max: scaled(credit.max_ns),
            baseline_ppm: i128::from(credit.baseline_ppm),
            load_ppm: i128::from(credit.load_ppm),
            is_used_up: balance == 0,
            at: Time::ZERO,
            spent: Span::ZERO,
        }
    }

    /// Whether the host is on CPU whenever it needs to be.
    pub(super) fn is_left(&self) -> bool {
        !self.is_used_up
    }

    pub(super) fn advance(&mut self, now: Time, slices: &mut Slices) {
        while self.at < now {
            if self.is_used_up {
                let end = slices.next_period(self.at);
                if now < end {
                    return;
                }
                self.end_period(end, slices);
            } else {
                self.drain(now, slices);
            }
        }
    }

    pub(super) fn spend(&mut self, cost: Span) {
        if self.is_used_up {
            self.spent += cost;
        } else {
            self.balance -= self.charge(cost);
        }
    }

    /// Returns the credit that CPU time for packets costs in addition to the load.
    fn charge(&self, time: Span) -> i128 {
        i128::from(time.0) * (i128::from(MILLION) - self.load_ppm)
    }

    /// Updates the balance for time on CPU, until `now` or until the balance is used up.
    fn drain(&mut self, now: Time, slices: &mut Slices) {
        let rate = self.baseline_ppm - self.load_ppm;
        let lasts = match (self.balance.max(0), rate) {
            (0, _) => Some(0),
            (balance, ..0) => u64::try_from((balance + -rate - 1) / -rate).ok(),
            _ => None,
        };
        match lasts.map(|ns| self.at + Span(ns)).filter(|end| *end <= now) {
            Some(end) => {
                self.balance = self.balance.min(0);
                (self.at, self.is_used_up) = (end, true);
                slices.begin_at(end);
            }
            None => {
                let passed = i128::from(now.since(self.at).0);
                self.balance = (self.balance + rate * passed).min(self.max);
                self.at = now;
            }
        }
    }

    /// Updates the balance at the end of a period in which the host had one slice.
    fn end_period(&mut self, end: Time, slices: &Slices) {
        let slice = slices.length(self.at);
        let earned = i128::from(slices.period.0) * self.baseline_ppm;
        let spent = std::mem::take(&mut self.spent).min(slice);
        let used = i128::from(slice.0) * self.load_ppm + self.charge(spent);
        self.balance = (self.balance + earned - used).max(self.balance.min(0)).min(self.max);
        self.at = end;
        self.is_used_up = self.balance < scaled(slices.slice).min(self.max.max(1));
    }
}

fn scaled(time: Span) -> i128 {
    i128::from(time.0) * i128::from(MILLION)
}
