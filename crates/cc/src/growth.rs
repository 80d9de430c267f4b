//! Slow start and additive increase, shared by the controllers that use them.
//!
//! Source: RFC 5681, section 3.1, counted in segments instead of bytes as Linux does (appropriate byte counting, RFC
//! 3465, without its limit).

use crate::{Ack, Conn, Window};
use thalweg_units::Packets;

/// A factor of 1: factors that multiply windows are in 1024ths.
pub(crate) const UNIT: u64 = 1024;

/// Converts a factor between 0 and 1 to 1024ths.
pub(crate) fn in_1024ths(factor: f64) -> u64 {
    (factor * UNIT as f64).round() as u64
}

/// Returns `value` times `numerator / denominator`, saturating.
pub(crate) fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Returns ssthresh after a loss (RFC 5681, equation 4, with cwnd in place of FlightSize, as in Linux).
pub(crate) fn half(cwnd: Packets) -> Packets {
    Packets(cwnd.0 / 2).max(Packets(2))
}

/// Raises cwnd by one for each of the `acked` segments, up to ssthresh. Returns the number of segments that are left
/// over for congestion avoidance.
pub(crate) fn slow_start(window: &mut Window, acked: Packets) -> Packets {
    let grown = (window.cwnd + acked).min(window.ssthresh);
    let used = grown.saturating_sub(window.cwnd);
    window.cwnd = grown;
    acked.saturating_sub(used)
}

/// Applies slow start, and returns the ACK's segments that remain for congestion avoidance; `None` if none remain or
/// cwnd does not limit the sender.
#[inline]
pub(crate) fn beyond_slow_start(conn: &Conn, ack: &Ack, window: &mut Window) -> Option<Packets> {
    if !conn.is_cwnd_limited {
        return None;
    }
    if !window.is_in_slow_start() {
        return Some(ack.acked);
    }
    Some(slow_start(window, ack.acked)).filter(|surplus| *surplus > Packets::ZERO)
}

/// Raises cwnd by one packet every N acknowledged segments.
#[derive(Debug, Default)]
pub(crate) struct AdditiveIncrease {
    /// Acknowledged segments that have not yet raised cwnd.
    credit: Packets,
}

impl AdditiveIncrease {
    /// Adds `acked` acknowledged segments; cwnd grows by one every `per_step` segments (at least 1).
    pub fn grow(&mut self, window: &mut Window, per_step: Packets, acked: Packets) {
        // Credit from a time with a higher N counts for at most one step, so that cwnd does not jump when N falls.
        if self.credit >= per_step {
            self.credit = Packets::ZERO;
            window.cwnd += Packets(1);
        }
        self.credit += acked;
        let steps = self.credit.0 / per_step.0;
        self.credit = Packets(self.credit.0 % per_step.0);
        window.cwnd += Packets(steps);
    }

    /// Handles an ACK on which cwnd may be raised: slow start, then one segment per window (RFC 5681).
    pub fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window) {
        let Some(acked) = beyond_slow_start(conn, ack, window) else { return };
        let per_step = window.cwnd;
        self.grow(window, per_step, acked);
    }

    /// Returns the credit (Linux: `snd_cwnd_cnt`).
    pub fn credit(&self) -> Packets {
        self.credit
    }

    /// Resets the credit.
    pub fn reset(&mut self) {
        self.credit = Packets::ZERO;
    }
}
