//! ProbeRTT: measures the round-trip time without queues (5.3.4, 5.5.7).
//!
//! If no smaller sample has arrived for 5 s, ProbeRTT lowers the data in flight to half a BDP for at least 200 ms and
//! one round, so that the queue drains and the round-trip time without a queue can be measured.

use super::cycle::AckPhase;
use super::sample::Sample;
use super::state::{Bbr3, Mode};
use crate::{Conn, Window};
use rand_core::Rng;
use thalweg_units::{Packets, Span};

/// Minimum duration of ProbeRTT (2.16.2, ProbeRTTDuration).
const DURATION: Span = Span::from_millis(200);

impl Bbr3 {
    /// Updates the minima with the ACK's round-trip time; enters, continues and leaves ProbeRTT (CheckProbeRTT).
    pub(super) fn update_min_rtt(&mut self, conn: &Conn, sample: &Sample, window: &mut Window, rng: &mut dyn Rng) {
        let is_due = self.min_rtt.update(conn, sample);
        if is_due && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.done_at = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(conn);
        }
        if self.mode == Mode::ProbeRtt {
            self.keep_inflight_low(conn, window, rng);
        }
        if sample.delivered > Packets::ZERO {
            self.is_restarting = false;
        }
    }

    /// Starts the timer of ProbeRTT once the pipe has drained, and leaves ProbeRTT when it has expired
    /// (HandleProbeRTT).
    fn keep_inflight_low(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        window.is_held_back = true;
        if self.min_rtt.done_at.is_none() {
            if conn.inflight <= self.probe_rtt_cwnd() {
                self.min_rtt.done_at = Some(conn.jiffies + conn.hz.covering(DURATION));
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

    /// Restores cwnd and returns to Startup or ProbeBW, if few packets were in flight for long enough
    /// (CheckProbeRTTDone, ExitProbeRTT).
    pub(super) fn leave_probe_rtt_when_due(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        if self.min_rtt.done_at.is_none_or(|done_at| conn.jiffies <= done_at) {
            return;
        }
        self.min_rtt.recent_at = conn.jiffies;
        window.cwnd = window.cwnd.max(self.recovery.prior_cwnd);
        self.short_term.reset();
        if !self.full_pipe.is_reached {
            self.mode = Mode::Startup;
            return;
        }
        self.mode = Mode::ProbeBw;
        // Restarts the clock, since raising the packets in flight may cause losses; the queue is already empty.
        self.start_down(conn, rng);
        self.start_cruise();
    }
}
