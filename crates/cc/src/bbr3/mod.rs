//! BBR, version 3. In addition to bandwidth and round-trip time (version 1), the model of the path contains the amount
//! of data that can be in flight without loss, and short-term bounds.
//!
//! The long-term model describes the capacity of the path: the highest bandwidth of the last two probes, the smallest
//! round-trip time, and the number of packets in flight at which a probe caused too much loss. The short-term model
//! describes its current state: after a loss outside of a probe, the bounds of the rate and of the packets in flight
//! fall by 30 % per round trip, but not below what was delivered. The next probe resets it.
//!
//! ```text
//!             |
//!             v
//!   +---> STARTUP ------------+    doubles the rate each round, until the bandwidth
//!   |         |               |    stops growing or losses are frequent
//!   |         v               |
//!   |       DRAIN ------------+    empties the queue that STARTUP has built
//!   |         |               |
//!   |         v               |
//!   |   PROBE_BW              |
//!   |    DOWN --> CRUISE      |    0.9 times the bandwidth until the queue is empty, then 1 times
//!   |     ^         |         |
//!   |     |         v         |    after 2 to 3 s, or as many rounds as the BDP has packets (63 at most):
//!   |     UP <-- REFILL ------+    one round at the bandwidth, then 1.25 times the bandwidth
//!   |                         |
//!   +------ PROBE_RTT <-------+    every 5 s without a smaller round-trip time: half a BDP for 200 ms
//! ```
//!
//! Sources: draft-ietf-ccwg-bbr-06 (6 July 2026), whose sections are given in parentheses; behaviour of the kernel that
//! Google publishes with BBRv3 (its branch `v3`).
//!
//! Deviations from that kernel:
//! - Arithmetic does not wrap.
//! - A burst is sized by the connection's own rule ([`min_burst`](crate::Controller::min_burst)).
//! - Flows are not rehashed onto other paths (PLB).
//!
//! Reported, among other values: `mode` (0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT), `phase` (of ProbeBW: 0 Up, 1 Down,
//! 2 Cruise, 3 Refill), `bw_bps` and `max_bw_bps` (payload; the former with the short-term bound), `min_rtt_us` (0
//! before the first), `inflight_longterm_packets` and `inflight_shortterm_packets` (0: no bound).

mod bounds;
mod congestion;
mod cycle;
mod ecn;
mod full_pipe;
mod inflight;
mod long_term;
mod mark_fraction;
mod max_bw;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod round;
mod sample;
mod short_term;
mod signals;
mod startup;
mod state;
mod variant;
mod window;
mod wrapped;

use crate::fixed_point::Gain;
use crate::{Ack, CaState, Conn, Controller, EcnFeedback, LostSegment, Param, Window};
use rand_core::Rng;
use sample::Sample;
pub(crate) use state::Bbr3;
use state::Mode;
use thalweg_units::{Packets, Span};

pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "variant",
        about: "variant of version 3: 0 Google's Linux branch, 1 draft-ietf-ccwg-bbr-06",
        default: 0.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
    Param {
        name: "ecn_low",
        about: "whether BBR responds to CE marks as those of a queue with a shallow marking threshold (1 or 0); only \
                once the minimum RTT has been 5 ms or less",
        default: 0.0,
        min: 0.0,
        max: 1.0,
        is_whole: true,
    },
    Param {
        name: "cpu_rule",
        about: "response to a shared CPU: 0 none, 1 as in the 2BRobust paper, 2 catches up on data that pacing missed",
        default: 0.0,
        min: 0.0,
        max: 2.0,
        is_whole: true,
    },
];

impl Bbr3 {
    /// Updates the model and the state machine with an ACK (5.2.3).
    fn update_model(&mut self, conn: &Conn, sample: &Sample, window: &mut Window, rng: &mut dyn Rng) {
        self.update_congestion_signals(sample, window);
        self.update_aggregation(conn, sample, window);
        self.check_startup_loss(conn, sample, window);
        self.check_full_pipe(sample);
        self.check_drain(conn, window, rng);
        self.update_cycle(conn, sample, window, rng);
        self.update_min_rtt(conn, sample, window, rng);
    }

    /// Implements Linux's shortcut: if the sender is application-limited without congestion, only the passage of time
    /// can change the state. Returns whether the model is up to date, and whether rate and cwnd are too.
    fn update_by_time_only(
        &mut self,
        conn: &Conn,
        sample: &Sample,
        window: &mut Window,
        rng: &mut dyn Rng,
    ) -> (bool, bool) {
        let is_calm = self.is_at_target
            && sample.is_app_limited
            && sample.bw < self.max_bw.max()
            && !self.signals.is_loss_in_round
            && !self.signals.is_mark_in_round;
        if !is_calm {
            return (false, false);
        }
        let (mode, min_rtt) = (self.mode, self.min_rtt.rtt);
        self.check_drain(conn, window, rng);
        self.update_cycle(conn, sample, window, rng);
        self.update_min_rtt(conn, sample, window, rng);
        (true, self.mode == mode && self.min_rtt.rtt == min_rtt && self.is_at_target)
    }

    fn update_aggregation(&mut self, conn: &Conn, sample: &Sample, window: &Window) {
        if sample.acked == Packets::ZERO || !sample.is_valid {
            return;
        }
        if self.round.is_start {
            self.aggregation.begin_round(if self.full_pipe.is_reached {
                crate::aggregation::HALF_WINDOW_ROUNDS
            } else {
                1
            });
        }
        self.aggregation.update(conn.delivered_at, sample.acked, self.bandwidth(), window.cwnd);
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn paces(&self) -> bool {
        true
    }

    fn watches_losses(&self) -> bool {
        true
    }

    fn needs_ecn(&self) -> Option<EcnFeedback> {
        self.ecn.is_low.then_some(EcnFeedback::Dctcp)
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, _rng: &mut dyn Rng) {
        window.ssthresh = Packets::MAX;
        self.begin(conn, window);
        self.pacing.begin(conn, window);
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        let sample = Sample::of(ack);
        self.round.update(conn, &sample);
        if self.round.is_start {
            self.update_mark_fraction(conn, window);
        }
        self.signals.is_mark_in_round |= self.ecn.is_eligible && ack.is_marked;
        self.signals.update_latest(conn, &sample);
        let (is_modelled, is_done) = self.update_by_time_only(conn, &sample, window, rng);
        if !is_done {
            if !is_modelled {
                self.update_model(conn, &sample, window, rng);
            }
            self.update_gains();
            let bw = self.bandwidth();
            self.pacing.set(conn, bw, self.pacing_gain, self.full_pipe.is_reached, window);
            self.set_cwnd(conn, sample.acked, window);
            self.bound_cwnd(window);
        }
        self.signals.advance_latest(&sample);
        self.recovery.prior_state = conn.state;
        self.signals.is_loss_in_cycle |= sample.lost > Packets::ZERO;
        self.signals.is_mark_in_cycle |= sample.delivered_ce > Packets::ZERO;
    }

    fn on_lost(&mut self, conn: &Conn, segment: &LostSegment, window: &mut Window, rng: &mut dyn Rng) {
        self.note_loss(conn, window);
        self.judge_lost_segment(conn, segment, window, rng);
    }

    fn on_probe_repair(&mut self, conn: &Conn, is_app_limited: bool, window: &mut Window, rng: &mut dyn Rng) {
        self.note_loss(conn, window);
        self.judge_probe_repair(conn, is_app_limited, window, rng);
    }

    /// Leaves ssthresh unchanged, and saves cwnd for the time after recovery (5.6.4.4) and the bounds for an undo
    /// (5.5.11.1).
    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.save_for_undo(window);
        window.ssthresh
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, _rng: &mut dyn Rng) {
        let is_leaving_recovery = conn.state == CaState::Recovery && self.variant.restores_after_recovery;
        if next == CaState::Loss {
            self.recovery.prior_state = CaState::Loss;
            self.full_pipe.restart();
            // If the short-term bound is not set yet, it starts from cwnd before the timeout.
            if !self.is_probing() && self.short_term.inflight.is_none() {
                self.short_term.inflight = Some(window.cwnd.max(self.recovery.prior_cwnd));
            }
        } else if self.recovery.prior_state == CaState::Loss || (is_leaving_recovery && next == CaState::Open) {
            window.cwnd = window.cwnd.max(self.recovery.prior_cwnd);
            self.is_at_target = false;
        }
    }

    /// Handles the first transmission after an idle period (5.4.1).
    fn on_transmit_start(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        if !conn.is_app_limited {
            return;
        }
        self.is_restarting = true;
        self.aggregation.begin(conn.now);
        match self.mode {
            Mode::ProbeBw => {
                let bw = self.bandwidth();
                self.pacing.set(conn, bw, Gain::UNIT, self.full_pipe.is_reached, window);
            }
            Mode::ProbeRtt => self.leave_probe_rtt_when_due(conn, window, rng),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn undo(&mut self, conn: &Conn, _prior_cwnd: Packets, _window: &Window) -> Packets {
        self.undo_loss(conn)
    }

    fn sndbuf_factor(&self) -> u64 {
        3
    }

    fn report(&self, conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        let bound = |bound: Option<Packets>| bound.map_or(0.0, |bound| bound.0 as f64);
        take("mode", f64::from(self.mode as u8));
        take("phase", f64::from(self.cycle.phase as u8));
        take("bw_bps", self.bandwidth().rate(conn.mss).0 as f64);
        take("max_bw_bps", self.max_bw.max().rate(conn.mss).0 as f64);
        take("min_rtt_us", self.min_rtt.rtt.map_or(0, Span::as_micros) as f64);
        take("pacing_gain", self.pacing_gain.as_f64());
        take("cwnd_gain", self.cwnd_gain.as_f64());
        take("full_bw_reached", f64::from(u8::from(self.full_pipe.is_reached)));
        take("round", self.round.count as f64);
        take("inflight_longterm_packets", bound(self.long_term));
        take("inflight_shortterm_packets", bound(self.short_term.inflight));
        take("extra_acked_packets", self.aggregation.largest().0 as f64);
    }
}
