//! ProbeRTT: measures the round-trip time without queues.
//!
//! If no sample has been lower than the estimate for 10 s, ProbeRTT lowers cwnd to 4 packets for at least 200 ms and
//! one round (Linux's values), so that the queue drains and the round-trip time without a queue can be measured.

use super::min_rtt::whole_micros;
use super::state::{Bbr, Mode};
use crate::fixed_point::Gain;
use crate::{Ack, Conn, Window};
use rand_core::Rng;
use thalweg_units::{Packets, Time};

impl Bbr {
    /// Updates the minimum with the ACK's round-trip time; enters, continues and leaves ProbeRTT.
    pub(super) fn update_min_rtt(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        let now = conn.jiffies;
        let is_expired = now > self.min_rtt.seen_at + conn.hz.covering(self.settings.probe_rtt.interval);
        if let Some(rtt) = ack.rtt.map(whole_micros) {
            let is_lower = self.min_rtt.rtt.is_none_or(|min_rtt| rtt < min_rtt);
            if is_lower || (is_expired && !ack.is_delayed) {
                self.min_rtt.rtt = Some(rtt);
                self.min_rtt.seen_at = now;
            }
        }
        if is_expired && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.keep_inflight_low(conn, window, rng);
        }
        if ack.rate.is_some_and(|sample| sample.delivered.0 > 0) {
            self.is_restarting = false;
        }
    }

    /// Returns cwnd in ProbeRTT.
    pub(super) fn probe_rtt_cwnd(&self) -> Packets {
        let settings = &self.settings.probe_rtt;
        if settings.bdp_share == Gain::ZERO {
            return settings.cwnd;
        }
        settings.cwnd.max(self.bdp(self.bandwidth(), settings.bdp_share))
    }

    fn keep_inflight_low(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        window.is_held_back = true;
        if self.min_rtt.done_at.is_none() {
            if conn.inflight <= self.probe_rtt_cwnd() {
                self.min_rtt.done_at = Some(conn.jiffies + conn.hz.covering(self.settings.probe_rtt.duration));
                self.min_rtt.is_round_done = false;
                self.round.restart(conn);
            }
            return;
        }
        self.min_rtt.is_round_done |= self.round.is_start;
        if self.min_rtt.is_round_done {
            self.leave_probe_rtt_when_due(conn, window, rng);
        }
    }

    /// Restores cwnd and returns to Startup or ProbeBW if cwnd has been low for long enough.
    pub(super) fn leave_probe_rtt_when_due(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        let now = conn.jiffies;
        if self.min_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.seen_at = now;
        window.cwnd = window.cwnd.max(self.recovery.prior_cwnd);
        if self.full_pipe.is_reached {
            self.enter_probe_bw(conn.delivered_at, rng);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Enters ProbeBW at a random point of its cycle.
    pub(super) fn enter_probe_bw(&mut self, now: Time, rng: &mut dyn Rng) {
        self.mode = Mode::ProbeBw;
        self.cycle.enter(now, rng);
    }
}
