//! BBR for senders that share a CPU: version 1 ([`Bbr`](crate::bbr::Bbr)) or 3 ([`Bbr3`](crate::bbr3::Bbr3)) with a
//! rule on top.
//!
//! On each ACK, BBR runs first, with a rate sample whose interval the rule may have extended. Then the rule evaluates
//! BBR's result and the events since the previous ACK, and may change the former. On ACKs and at the start of a
//! transmission, BBR receives its own pacing rate, not the one that a rule has set.
//!
//! The same rules in C are in bpf/cc/cpu_rules; tests/vectors/bbr_cpu.json tests both.
//!
//! Reported in addition to BBR's values: `boosted_acks` (number of ACKs at which the rate was raised) and, by the rule
//! `schedule`, `owed_bytes` (bytes by which the sender is behind the pacing schedule), `stall_us` (the longest recent
//! stall), `stall_bw_bps` (the bandwidth between stalls), `cap_packets` (bound on cwnd; 0 if unknown).

mod paper;
mod rule;
mod schedule;
#[cfg(test)]
mod vectors;

use crate::bbr;
use crate::wrapped::Wrapped;
use crate::{Ack, CaState, Conn, Controller, EcnFeedback, LostSegment, Param, Window};
use paper::Paper;
use rand_core::Rng;
use rule::{Input, Output};
use schedule::Schedule;
use thalweg_units::{Packets, Rate, Span};

/// The parameters: BBR's, and the rule.
pub(crate) const PARAMS: &[Param] = &{
    let mut params = [RULE; bbr::PARAMS.len() + 1];
    let mut index = 0;
    while index < bbr::PARAMS.len() {
        params[index] = bbr::PARAMS[index];
        index += 1;
    }
    params
};

const RULE: Param = Param {
    name: "rule",
    about: "response to a shared CPU: 0 as in the 2BRobust paper, 1 catches up on data that pacing missed",
    default: 1.0,
    min: 0.0,
    max: 1.0,
    is_whole: true,
};

/// BBR and the rule that wraps it.
#[derive(Debug)]
pub(crate) struct BbrCpu<B> {
    bbr: B,
    rule: Rule,
    /// The pacing rate that BBR has set.
    bbr_pacing_rate: Rate,
    boosted_acks: u64,
}

impl<B: Wrapped> BbrCpu<B> {
    /// Creates the controller for a connection that is being established. `is_paper` selects the paper's rule.
    pub fn new(bbr: B, is_paper: bool) -> BbrCpu<B> {
        let paper = || Rule::Paper(Paper::new(B::STARTUP_GAIN, B::EXPECTED_PERCENT));
        BbrCpu {
            bbr,
            rule: if is_paper { paper() } else { Rule::Schedule(Schedule::new(B::MISSED_RATIO, B::MISSED_US)) },
            bbr_pacing_rate: Rate::ZERO,
            boosted_acks: 0,
        }
    }

    /// Returns the ACK with the corrected rate sample.
    fn corrected(&self, conn: &Conn, ack: &Ack) -> Ack {
        let mut ack = *ack;
        let min_rtt_us = self.bbr.model().min_rtt_us;
        if let Some(sample) = &mut ack.rate {
            if let Some(interval) =
                sample.interval.filter(|interval| interval.as_micros() > 0 && sample.delivered.0 > 0)
            {
                let (now_us, interval_us) = (conn.now.as_micros(), interval.as_micros());
                let corrected_us = self.rule.interval_us(now_us, min_rtt_us, sample.delivered.0, interval_us);
                if corrected_us > interval_us {
                    sample.interval = Some(Span::from_micros(corrected_us));
                }
            }
        }
        ack
    }

    fn input(&self, conn: &Conn, ack: &Ack, window: &Window, prior_cwnd: Packets) -> Input {
        let model = self.bbr.model();
        Input {
            now_us: conn.now.as_micros(),
            departure_us: conn.next_departure.as_micros(),
            bytes_sent: conn.bytes_sent.0,
            inflight_bytes: conn.bytes_sent.saturating_sub(conn.una_bytes).0,
            mss: conn.mss.0,
            srtt_us: conn.srtt.map_or(0, Span::as_micros),
            rtt_us: ack.rtt.map_or(0, Span::as_micros),
            snd_cwnd: window.cwnd.0,
            prior_cwnd: prior_cwnd.0,
            acked: ack.acked.0,
            inflight: conn.inflight.0,
            prior_inflight: ack.prior_inflight.0,
            delivered: conn.delivered.0,
            lost: conn.lost.0,
            ca_state: conn.state as u64,
            is_held_back: conn.is_app_limited || conn.is_receiver_limited,
            rate_app_limited: ack.rate.is_some_and(|sample| sample.is_app_limited),
            pacing_rate_bytes_per_s: window.pacing_rate.0 / 8,
            max_pacing_rate_bytes_per_s: u64::MAX / 8,
            bw: model.bw,
            min_rtt_us: model.min_rtt_us,
            mode: model.mode,
            full_bw_count: model.full_bw_count,
            inflight_bound: model.inflight_bound,
            unbounded_cwnd: model.unbounded_cwnd,
        }
    }

    fn apply(&mut self, conn: &Conn, output: &Output, window: &mut Window) {
        if let Some(rate) = output.pacing_rate_bytes_per_s {
            // The rule's rate is in whole bytes per second, so it may be below BBR's by less than 8 bit/s.
            window.pacing_rate = window.pacing_rate.max(Rate(rate.saturating_mul(8)));
        }
        if let Some(gain) = output.pacing_gain {
            self.bbr.set_pacing_gain(gain);
        }
        if let Some(cwnd) = output.snd_cwnd {
            window.cwnd = Packets(cwnd);
        }
        if output.is_startup_over {
            self.bbr.end_startup();
        }
        if let Some(count) = output.full_bw_count {
            self.bbr.set_full_bw_count(count);
        }
        if output.is_min_rtt_fresh {
            self.bbr.refresh_min_rtt(conn);
        }
        self.boosted_acks += u64::from(output.is_boosted);
    }
}

#[derive(Clone, Debug)]
enum Rule {
    Paper(Paper),
    Schedule(Schedule),
}

impl Rule {
    /// Returns the interval that BBR is to use for a rate sample of `delivered` packets in `interval_us`.
    fn interval_us(&self, now_us: u64, min_rtt_us: u64, delivered: u64, interval_us: u64) -> u64 {
        match self {
            Rule::Paper(_) => interval_us,
            Rule::Schedule(schedule) => schedule.interval_us(now_us, min_rtt_us, delivered, interval_us),
        }
    }

    fn step(&mut self, input: &Input) -> Output {
        match self {
            Rule::Paper(paper) => paper.step(input),
            Rule::Schedule(schedule) => schedule.step(input),
        }
    }
}

impl<B: Wrapped> Controller for BbrCpu<B> {
    fn name(&self) -> &'static str {
        B::NAME_WITH_RULE
    }

    fn needs_ecn(&self) -> Option<EcnFeedback> {
        self.bbr.needs_ecn()
    }

    fn watches_losses(&self) -> bool {
        self.bbr.watches_losses()
    }

    fn on_lost(&mut self, conn: &Conn, segment: &LostSegment, window: &mut Window, rng: &mut dyn Rng) {
        self.bbr.on_lost(conn, segment, window, rng);
    }

    fn on_probe_repair(&mut self, conn: &Conn, is_app_limited: bool, window: &mut Window, rng: &mut dyn Rng) {
        self.bbr.on_probe_repair(conn, is_app_limited, window, rng);
    }

    fn governs_recovery(&self) -> bool {
        self.bbr.governs_recovery()
    }

    fn paces(&self) -> bool {
        self.bbr.paces()
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        self.bbr.on_established(conn, window, rng);
        self.bbr_pacing_rate = window.pacing_rate;
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        let prior_cwnd = window.cwnd;
        window.pacing_rate = self.bbr_pacing_rate;
        self.bbr.on_ack(conn, &self.corrected(conn, ack), window, rng);
        self.bbr_pacing_rate = window.pacing_rate;
        let output = self.rule.step(&self.input(conn, ack, window, prior_cwnd));
        self.apply(conn, &output, window);
    }

    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets {
        self.bbr.ssthresh(conn, window)
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, rng: &mut dyn Rng) {
        self.bbr.on_state(conn, next, window, rng);
    }

    fn on_transmit_start(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        window.pacing_rate = self.bbr_pacing_rate;
        self.bbr.on_transmit_start(conn, window, rng);
        self.bbr_pacing_rate = window.pacing_rate;
    }

    fn undo(&mut self, conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        self.bbr.undo(conn, prior_cwnd, window)
    }

    fn min_burst(&self, window: &Window) -> Packets {
        self.bbr.min_burst(window)
    }

    fn sndbuf_factor(&self) -> u64 {
        self.bbr.sndbuf_factor()
    }

    fn report(&self, conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        self.bbr.report(conn, take);
        take("boosted_acks", self.boosted_acks as f64);
        if let Rule::Schedule(schedule) = &self.rule {
            schedule.report(conn.mss, take);
        }
    }
}
