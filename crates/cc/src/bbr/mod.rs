//! BBR, version 1: bases its decisions on a model of the path (bandwidth and round-trip time) instead of on losses.
//!
//! The delivery rate is at most the bottleneck's bandwidth; the round-trip time is at least that of the empty path. The
//! maximum of the former and the minimum of the latter, measured at different times, yield the bandwidth-delay product
//! (BDP): the data that fills the pipe without a queue. BBR paces at the bandwidth and keeps about one BDP in flight.
//!
//! ```text
//!             |
//!             v
//!   +---> STARTUP ----+    doubles the rate each round, until the bandwidth
//!   |         |       |    stops growing
//!   |         v       |
//!   |       DRAIN ----+    empties the queue that STARTUP has built
//!   |         |       |
//!   |         v       |
//!   +---> PROBE_BW ---+    paces at 1.25, then 0.75, then six times 1 times the
//!   |      ^    |     |    bandwidth, each for a round trip
//!   |      |    |     |
//!   |      +----+     |
//!   |                 |
//!   +--- PROBE_RTT <--+    every 10 s without a smaller round-trip time: 4 packets
//!                          for 200 ms
//! ```
//!
//! Sources: Cardwell, Cheng, Gunn, Hassas Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14
//! (2016); draft-cardwell-iccrg-bbr-congestion-control-00 (2017); behaviour of Linux 6.x (`tcp_bbr`).
//!
//! Linux's deviations from the draft: pacing 1 % below the bandwidth, detection of policers, headroom in cwnd for ACK
//! aggregation, prediction of the data in flight at the next departure, and integer arithmetic.
//!
//! Deviations from Linux:
//! - Arithmetic does not wrap at high rates.
//! - A measured bandwidth is at least a packet per 17 s. Linux rounds to 0 there, and sends unpaced.
//! - A random phase is drawn with a small bias.
//! - cwnd and the pacing rate have no limit that an administrator sets.
//!
//! Two consequences of Linux's behaviour:
//! - If ProbeRTT coincides with an outage, the late ACKs raise the smoothed round-trip time to about the length of the
//!   outage. More packets count as in flight than cwnd allows, so nothing is sent until the tail loss probe, two
//!   smoothed round-trip times later.
//! - The policer detection treats two rates within 4 kbit/s as equal at any speed. An overload that delivers almost
//!   nothing in two intervals is mistaken for a policer, and limits BBR to that rate for 48 rounds.
//!
//! Parameters: see `settings`.
//!
//! Reported, among other values: `mode` (0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT), `bw_bps` (payload; the policer's
//! rate if in use), `min_rtt_us` (0 before the first sample), `lt_bw_in_use` (whether the policer's rate is used), and
//! `inflight_bound_packets` (once losses bound cwnd).

mod auto_gain;
mod inflight;
mod loss_bound;
mod min_rtt;
mod policer;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod round;
mod settings;
mod startup;
mod state;
mod window;
mod wrapped;

use crate::{Ack, CaState, Conn, Controller, Window};

use crate::aggregation::HALF_WINDOW_ROUNDS;
use crate::fixed_point::{Bandwidth, Gain};
pub(crate) use auto_gain::{PARAMS as AUTO_PARAMS, Response};
use min_rtt::MinRtt;
use policer::{Evidence, Finding};
use rand_core::Rng;
pub use settings::Word;
pub(crate) use settings::{PARAMS, Settings};
pub(crate) use state::Bbr;
use state::Mode;
use thalweg_units::Packets;

impl Bbr {
    fn update_bandwidth(&mut self, conn: &Conn, ack: &Ack, window: &Window, rng: &mut dyn Rng) {
        self.round.is_start = false;
        let Some(sample) = ack.rate else { return };
        let Some(interval) = sample.interval.filter(|interval| interval.as_micros() > 0) else { return };
        self.round.update(conn, &sample);
        if self.round.is_start {
            self.recovery.is_conserving = false;
            self.max_bw_clock.on_round(conn.delivered_at);
        }
        self.look_for_policer(conn, ack.lost > Packets::ZERO, sample.is_app_limited, rng);
        let bw = Bandwidth::of(sample.delivered, interval);
        // An application-limited sample may be lower than the bandwidth, but not higher.
        if !sample.is_app_limited || bw >= self.max_bw.max() {
            self.max_bw.update(self.max_bw_clock.ticks, bw);
        }
        let bw = self.bandwidth();
        if ack.acked > Packets::ZERO {
            if self.round.is_start {
                self.aggregation.begin_round(HALF_WINDOW_ROUNDS);
            }
            self.aggregation.update(conn.delivered_at, ack.acked, bw, window.cwnd);
        }
    }

    fn look_for_policer(&mut self, conn: &Conn, has_loss: bool, is_app_limited: bool, rng: &mut dyn Rng) {
        if !self.settings.is_policer_detected {
            return;
        }
        let evidence = Evidence {
            has_loss,
            is_app_limited,
            is_round_start: self.round.is_start,
            is_probing_bw: self.mode == Mode::ProbeBw,
        };
        match self.policer.update(conn, evidence) {
            Finding::Nothing => {}
            Finding::Found => self.pacing_gain = Gain::UNIT,
            Finding::HeldLongEnough => self.enter_probe_bw(conn.delivered_at, rng),
        }
    }

    fn update_cycle(&mut self, conn: &Conn, ack: &Ack, window: &Window, rng: &mut dyn Rng) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(conn, ack, window) {
            self.cycle.advance(conn.delivered_at, rng);
        }
    }

    fn is_phase_over(&self, conn: &Conn, ack: &Ack, window: &Window) -> bool {
        let is_full_length = self.cycle.is_full_length(conn.delivered_at, self.min_rtt.rtt);
        // 1 while a policer's rate is used.
        let gain = self.pacing_gain;
        if gain == Gain::UNIT || self.cycle.is_cruising_at(gain) {
            return is_full_length;
        }
        let inflight = self.inflight_at_departure(ack.prior_inflight, conn, window);
        let target = |gain| self.target_inflight(self.max_bw.max(), gain, conn, window);
        if gain > Gain::UNIT {
            return is_full_length && (ack.lost > Packets::ZERO || inflight >= target(gain));
        }
        is_full_length || inflight <= target(Gain::UNIT)
    }

    /// Leaves Startup when the pipe is full, and Drain when the queue is empty.
    fn update_startup(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        if self.round.is_start && ack.rate.is_some_and(|sample| !sample.is_app_limited) {
            self.full_pipe.on_round(self.max_bw.max());
        }
        let bdp = |bbr: &Bbr, window: &Window| bbr.target_inflight(bbr.max_bw.max(), Gain::UNIT, conn, window);
        if self.mode == Mode::Startup && self.full_pipe.is_reached {
            self.mode = Mode::Drain;
            window.ssthresh = bdp(self, window);
        }
        if self.mode == Mode::Drain && self.inflight_at_departure(conn.inflight, conn, window) <= bdp(self, window) {
            self.enter_probe_bw(conn.delivered_at, rng);
        }
    }

    /// Measures losses and queueing, and sets the gain of a probe that begins with this ACK.
    fn adapt_gain(&mut self, ack: &Ack, was_probing: bool) {
        let is_probing = self.is_probing();
        let Some(auto) = self.auto_gain.as_mut().filter(|_| self.mode == Mode::ProbeBw) else { return };
        if is_probing && !was_probing {
            self.cycle.set_probe_gain(auto.on_probe(self.min_rtt.rtt));
        }
        auto.update(ack, self.min_rtt.rtt, self.round.is_start, is_probing);
    }

    fn update_gains(&mut self) {
        let settings = &self.settings;
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (settings.startup_gain, settings.startup_cwnd_gain),
            Mode::Drain => (settings.drain_gain, settings.startup_cwnd_gain),
            Mode::ProbeBw if self.policer.bandwidth().is_some() => (Gain::UNIT, settings.probe_cwnd_gain),
            Mode::ProbeBw => (self.cycle.gain(), settings.probe_cwnd_gain),
            Mode::ProbeRtt => (Gain::UNIT, Gain::UNIT),
        };
    }
}

impl Controller for Bbr {
    fn name(&self) -> &'static str {
        if self.auto_gain.is_some() { "bbr_auto" } else { "bbr" }
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn paces(&self) -> bool {
        true
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, _rng: &mut dyn Rng) {
        window.ssthresh = Packets::MAX;
        self.round.restart(conn);
        self.min_rtt = MinRtt::new(conn);
        self.policer.reset(conn);
        self.aggregation.begin(conn.now);
        self.pacing.begin(conn, window);
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        self.update_bandwidth(conn, ack, window, rng);
        self.loss_bound.update(conn, ack, self.round.is_start, self.is_probing());
        let was_probing = self.is_probing();
        self.update_cycle(conn, ack, window, rng);
        self.update_startup(conn, ack, window, rng);
        self.adapt_gain(ack, was_probing);
        self.update_min_rtt(conn, ack, window, rng);
        self.update_gains();
        let bw = self.bandwidth();
        self.pacing.set(conn, bw, self.pacing_gain, self.full_pipe.is_reached, window);
        self.set_cwnd(conn, ack, bw, self.cwnd_gain, window);
    }

    /// Leaves ssthresh unchanged, and saves cwnd for the time after recovery.
    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, _window: &mut Window, rng: &mut dyn Rng) {
        if next != CaState::Loss {
            return;
        }
        self.recovery.prior_state = CaState::Loss;
        self.full_pipe.forget_baseline();
        // A timeout counts as a round, since it lasts at least a round trip.
        self.round.is_start = true;
        self.look_for_policer(conn, true, false, rng);
    }

    fn on_transmit_start(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        if !conn.is_app_limited {
            return;
        }
        self.is_restarting = true;
        self.aggregation.begin(conn.now);
        match self.mode {
            // The queue is empty: sending at the bandwidth refills the pipe without a queue.
            Mode::ProbeBw => {
                let bw = self.bandwidth();
                self.pacing.set(conn, bw, Gain::UNIT, self.full_pipe.is_reached, window);
            }
            Mode::ProbeRtt => self.leave_probe_rtt_when_due(conn, window, rng),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Undoes a spurious loss: restarts the detection of a full pipe and of a policer. cwnd was not lowered
    /// permanently.
    fn undo(&mut self, conn: &Conn, _prior_cwnd: Packets, window: &Window) -> Packets {
        self.full_pipe.restart();
        self.policer.reset(conn);
        window.cwnd
    }

    fn min_burst(&self, window: &Window) -> Packets {
        inflight::min_burst(window)
    }

    fn sndbuf_factor(&self) -> u64 {
        3
    }

    fn report(&self, conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        let truth = |is_true: bool| f64::from(u8::from(is_true));
        take("mode", f64::from(self.mode as u8));
        take("bw_bps", self.bandwidth().rate(conn.mss).0 as f64);
        take("min_rtt_us", self.min_rtt.rtt.map_or(0, |rtt| rtt.as_micros()) as f64);
        take("pacing_gain", self.pacing_gain.as_f64());
        take("cwnd_gain", self.cwnd_gain.as_f64());
        take("full_bw_reached", truth(self.full_pipe.is_reached));
        take("round", self.round.count as f64);
        take("lt_bw_in_use", truth(self.policer.bandwidth().is_some()));
        take("extra_acked_packets", self.aggregation.largest().0 as f64);
        if let Some(bound) = self.loss_bound.packets() {
            take("inflight_bound_packets", bound.0 as f64);
        }
    }

    fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        const SAMPLES: [(&str, &str); 3] =
            [("bw_s_0_t", "bw_s_0_v"), ("bw_s_1_t", "bw_s_1_v"), ("bw_s_2_t", "bw_s_2_v")];
        for ((at, value), sample) in SAMPLES.into_iter().zip(self.max_bw.samples()) {
            take(at, sample.0);
            take(value, sample.1.raw());
        }
        take("mode", self.mode as u64);
        take("pacing_gain", self.pacing_gain.raw());
        take("cwnd_gain", self.cwnd_gain.raw());
        take("idle_restart", u64::from(self.is_restarting));
        take("has_seen_rtt", u64::from(self.pacing.has_seen_rtt()));
        self.min_rtt.kernel_words(take);
        take("rtt_cnt", self.max_bw_clock.ticks);
        self.round.kernel_words(take);
        self.cycle.kernel_words(take);
        self.policer.kernel_words(take);
        self.full_pipe.kernel_words(take);
        self.recovery.kernel_words(take);
        self.aggregation.kernel_words(take);
    }
}
