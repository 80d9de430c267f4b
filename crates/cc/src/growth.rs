//! Slow start and additive increase, the same for every controller that has them.
//!
//! Source: RFC 5681, section 3.1, counted in segments instead of bytes as Linux does (appropriate byte counting,
//! RFC 3465, without its limit: an ACK that covers ten segments counts for ten).

use crate::{Ack, Conn, Window};
use thalweg_units::Packets;

/// Raises cwnd by one for each of the `acked` segments, up to ssthresh. Returns how many are left over for congestion
/// avoidance.
fn slow_start(window: &mut Window, acked: Packets) -> Packets {
    let grown = (window.cwnd + acked).min(window.ssthresh);
    let used = grown.saturating_sub(window.cwnd);
    window.cwnd = grown;
    acked.saturating_sub(used)
}

/// The segments of an ACK that are left over for congestion avoidance, after slow start if it is on; `None`: cwnd stays, as nothing
/// is left or cwnd does not limit what is sent.
#[inline]
pub(crate) fn beyond_slow_start(conn: &Conn, ack: &Ack, window: &mut Window) -> Option<Packets> {
    if !conn.is_cwnd_limited {
        return None;
    }
    if !window.is_in_slow_start() {
        return Some(ack.acked);
    }
    Some(slow_start(window, ack.acked)).filter(|left| *left > Packets::ZERO)
}

/// Raises cwnd by one per so many acknowledged segments.
#[derive(Debug, Default)]
pub(crate) struct AdditiveIncrease {
    /// Acknowledged segments that have not yet raised cwnd.
    credit: Packets,
}

impl AdditiveIncrease {
    /// `acked` segments were acknowledged and it takes `per_step` of them to raise cwnd by one. `per_step` is at least 1.
    pub fn grow(&mut self, window: &mut Window, per_step: Packets, acked: Packets) {
        // What was saved up while a step was dearer buys one step at most: cwnd does not jump when it gets cheaper.
        if self.credit >= per_step {
            self.credit = Packets::ZERO;
            window.cwnd += Packets(1);
        }
        self.credit += acked;
        let steps = self.credit.0 / per_step.0;
        self.credit = Packets(self.credit.0 % per_step.0);
        window.cwnd += Packets(steps);
    }

    /// What is saved up (Linux: `snd_cwnd_cnt`).
    pub fn credit(&self) -> Packets {
        self.credit
    }

    /// Congestion: what was saved up is void.
    pub fn reset(&mut self) {
        self.credit = Packets::ZERO;
    }
}
