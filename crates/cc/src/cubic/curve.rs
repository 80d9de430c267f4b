//! The growth of cwnd in congestion avoidance.
//!
//! After a reduction, cwnd follows W(t) = C (t - K)^3 + W_max (RFC 9438, section 4.2): fast far below W_max, the window
//! at the last congestion; slowly around it; fast again above. K is the time to return to W_max. Where Reno's window
//! would be larger (section 4.3), cwnd follows Reno.
//!
//! All arithmetic uses integers. Time is counted in 1024ths of a second, C = 410 / 1024 (RFC: 0.4), and the result is a
//! number of acknowledged segments per step of one segment.

use super::cube_root::cube_root;
use crate::Conn;
use crate::growth::{UNIT, scale};
use crate::jiffies::{Hz, Jiffies};
use thalweg_units::{Packets, Span};

/// 1024 times the factor by which a loss multiplies the window (RFC 9438: 0.7).
pub(super) const BETA: u64 = 717;

/// 1024 times C, in segments per second cubed. Linux: `bic_scale` (41) times 10.
const C: u64 = 410;

/// 1 / C in units of time cubed per segment: 2^10 x (2^10 per second)^3 / 410.
const INVERSE_C: u64 = (1 << 40) / C;

/// 8 times the number of windows that must be acknowledged per step of Reno's window, if it is multiplied by beta and
/// its average is to be that of Reno with one half: (1 + beta) / (3 (1 - beta)), 1 / alpha_cubic of the RFC.
const RENO_WINDOWS_8THS: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);

/// While cwnd does not change, a result is reused for 1/N s, in whole ticks.
const REFRESHES_PER_SECOND: u64 = 32;

#[derive(Debug, Default)]
pub(super) struct Curve {
    /// The window at the last congestion, reduced by fast convergence; zero before the first congestion and after a
    /// timeout.
    w_max: u64,
    /// The current epoch: a reduction ends it, and the next ACK in congestion avoidance begins a new one.
    epoch: Option<Epoch>,
    /// cwnd and time of the latest result.
    answered_cwnd: u64,
    answered_at: Jiffies,
    /// The latest result: acknowledged segments per step.
    per_step: u64,
}

#[derive(Debug)]
struct Epoch {
    start: Jiffies,
    /// Time from the start until the curve reaches its origin, in 1024ths of a second.
    k: u64,
    /// The plateau of the curve: W_max, or cwnd at the start of the epoch if that was higher.
    origin: u64,
    /// Acknowledged segments that have not yet increased Reno's window.
    acked: u64,
    /// Window of Reno under the same conditions.
    reno_cwnd: u64,
}

impl Curve {
    /// Returns the number of acknowledged segments per increment of cwnd, after `acked` more were acknowledged. The
    /// curve is evaluated one smallest round-trip time (`delay_min`) ahead, since growth takes effect that much later.
    pub fn acks_per_step(&mut self, conn: &Conn, cwnd: Packets, acked: Packets, delay_min: Span) -> Packets {
        let (now, hz, cwnd) = (conn.jiffies, conn.hz, cwnd.0);
        if let Some(epoch) = &mut self.epoch {
            epoch.acked = epoch.acked.saturating_add(acked.0);
        }
        if self.answered_cwnd == cwnd && now.since(self.answered_at).0 <= u64::from(hz.0) / REFRESHES_PER_SECOND {
            return Packets(self.per_step);
        }
        let is_same_tick = now == self.answered_at;
        let w_max = self.w_max;
        let is_new = self.epoch.is_none();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, w_max, acked.0));
        if is_new || !is_same_tick {
            self.answered_cwnd = cwnd;
            self.answered_at = now;
            self.per_step = epoch.acks_per_step(now, hz, cwnd, delay_min);
            // Without a W_max, grow by at least 5 % per round trip.
            if w_max == 0 {
                self.per_step = self.per_step.min(20);
            }
        }
        self.per_step = self.per_step.min(epoch.acks_per_step_of_reno(cwnd)).max(2);
        Packets(self.per_step)
    }

    /// Records congestion at `cwnd`; returns the window multiplied by `beta` 1024ths.
    pub fn reduce(&mut self, cwnd: Packets, beta: u64) -> Packets {
        self.epoch = None;
        // Fast convergence: a window that does not return to its earlier maximum leaves capacity to a new flow.
        self.w_max = if cwnd.0 < self.w_max { scale(cwnd.0, UNIT + BETA, 2 * UNIT) } else { cwnd.0 };
        Packets(scale(cwnd.0, beta, UNIT)).max(Packets(2))
    }

    /// Shifts the epoch by a `pause` in which nothing was sent, so that cwnd does not jump to the curve's later value.
    pub fn pause(&mut self, now: Jiffies, pause: Jiffies) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + pause).min(now);
        }
    }

    /// Returns the start of the current epoch.
    pub fn epoch_start(&self) -> Option<Jiffies> {
        self.epoch.as_ref().map(|epoch| epoch.start)
    }

    /// Passes the members of `struct bictcp` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("cnt", self.per_step);
        take("last_max_cwnd", self.w_max);
        take("last_cwnd", self.answered_cwnd);
        take("last_time", self.answered_at.0);
        let Some(epoch) = &self.epoch else { return take("epoch_start", 0) };
        take("epoch_start", epoch.start.0);
        take("bic_origin_point", epoch.origin);
        take("bic_K", epoch.k);
        take("ack_cnt", epoch.acked);
        take("tcp_cwnd", epoch.reno_cwnd);
    }

    /// Returns W_max; zero before the first congestion and after a timeout.
    pub fn w_max(&self) -> Packets {
        Packets(self.w_max)
    }

    /// Returns K of the current epoch in seconds; zero outside an epoch.
    pub fn k_s(&self) -> f64 {
        self.epoch.as_ref().map_or(0.0, |epoch| epoch.k as f64 / 1024.0)
    }

    /// Returns Reno's window in the current epoch; zero outside an epoch.
    pub fn reno_cwnd(&self) -> Packets {
        Packets(self.epoch.as_ref().map_or(0, |epoch| epoch.reno_cwnd))
    }
}

impl Epoch {
    fn new(start: Jiffies, cwnd: u64, w_max: u64, acked: u64) -> Epoch {
        let missing = w_max.saturating_sub(cwnd);
        let k = if missing == 0 { 0 } else { cube_root(INVERSE_C.saturating_mul(missing)) };
        Epoch { start, k, origin: w_max.max(cwnd), acked, reno_cwnd: cwnd }
    }

    /// Returns the segments per step with which cwnd reaches the curve one round trip from now; 100 windows if cwnd is
    /// not below the curve.
    fn acks_per_step(&self, now: Jiffies, hz: Hz, cwnd: u64, delay_min: Span) -> u64 {
        let ticks = now.since(self.start) + hz.covering(delay_min);
        let t = u128::from(ticks.0) * 1024 / u128::from(hz.0);
        let distance = t.abs_diff(u128::from(self.k)).min(1 << 36);
        let climb = u64::try_from((u128::from(C) * distance.pow(3)) >> 40).unwrap_or(u64::MAX);
        let target =
            if t < u128::from(self.k) { self.origin.saturating_sub(climb) } else { self.origin.saturating_add(climb) };
        if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) }
    }

    /// Updates Reno's window. If it exceeds cwnd, returns the segments per step with which cwnd reaches it in a round
    /// trip; otherwise [`u64::MAX`].
    fn acks_per_step_of_reno(&mut self, cwnd: u64) -> u64 {
        let per_step = cwnd.saturating_mul(RENO_WINDOWS_8THS) / 8;
        if self.acked > per_step {
            let steps = (self.acked - 1) / per_step;
            self.acked -= steps * per_step;
            self.reno_cwnd = self.reno_cwnd.saturating_add(steps);
        }
        if self.reno_cwnd > cwnd { cwnd / (self.reno_cwnd - cwnd) } else { u64::MAX }
    }
}
