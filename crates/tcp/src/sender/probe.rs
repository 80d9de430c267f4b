//! The loss probe (TLP, RFC 8985 section 7): about two round trips after the last new segment or ACK, a segment is sent
//! that elicits an ACK: new data if available, otherwise the last segment again. A probe of new data is one segment;
//! Linux sends a burst if cwnd allows one.
//!
//! If the retransmission of the last segment has repaired a loss (later data is acknowledged, and neither a D-SACK nor
//! a duplicate ACK has shown that both copies arrived), cwnd is reduced to the controller's ssthresh, unless the
//! controller governs recovery.

use super::ecn::Congestion;
use super::episode::is_reducing;
use super::facts::AckFacts;
use super::scoreboard::Flags;
use super::{Probe, Sender};
use rand_core::Rng;
use thalweg_cc::CaState;
use thalweg_units::Time;

impl Sender {
    /// Sends a loss probe, unless one is outstanding or pacing delays it. Returns its segment if it was sent.
    pub(super) fn send_probe(&mut self, now: Time, rng: &mut dyn Rng) -> Option<u64> {
        if self.board.packets_out() == 0 {
            self.timer = None;
            return None;
        }
        let seq = if self.probe.is_none() { self.make_probe(now, rng) } else { None };
        if seq.is_some() {
            self.counters.tlp_probes += 1;
            // The retransmission timeout restarts now.
            self.timer = None;
        }
        self.rearm_rto(now);
        seq
    }

    fn make_probe(&mut self, now: Time, rng: &mut dyn Rng) -> Option<u64> {
        if !self.has_sendable_data() {
            let last = self.board.next() - 1;
            self.is_probed_app_limited = self.board.segment(last).flags.has(Flags::APP_LIMITED);
            self.probe = Some(Probe { end: self.board.next(), is_copy: true });
            self.retransmit(now, rng, last, true);
            return Some(last);
        }
        if self.must_wait_for_departure(now) {
            return None;
        }
        // The probe is sent even if cwnd is exhausted.
        self.pacer.begin(now, 1);
        let seq = self.send_segment(now, rng);
        if is_reducing(self.state) {
            self.prr.on_sent();
        }
        self.validate_cwnd(now, self.board.in_flight() >= self.window.cwnd);
        self.probe = Some(Probe { end: self.board.next(), is_copy: false });
        Some(seq)
    }

    /// Handles an ACK up to `next`, which may show whether the probe has repaired a loss.
    pub(super) fn on_probe_answer(&mut self, now: Time, rng: &mut dyn Rng, next: u64, facts: &mut AckFacts) {
        let Some(probe) = self.probe.as_ref().filter(|probe| next >= probe.end) else {
            return;
        };
        if !probe.is_copy || facts.is_dsack_of_probe {
            self.probe = None;
        } else if next > probe.end {
            self.report_probe_repair(now, rng);
            self.begin_reduction(now, Congestion::Loss);
            self.set_state(now, rng, CaState::Cwr);
            self.end_reduction(now);
            self.try_keep_open(now, rng);
        } else if !facts.is_advancing && !facts.is_not_duplicate() && !facts.is_data_sacked {
            self.probe = None;
        } else {
            facts.is_probe_answer = true;
        }
    }

    fn report_probe_repair(&mut self, now: Time, rng: &mut dyn Rng) {
        let conn = self.conn(now);
        self.cc.on_probe_repair(&conn, self.is_probed_app_limited, &mut self.window, rng);
        self.obey_hold();
    }
}
