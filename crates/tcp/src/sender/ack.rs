//! Handles an ACK, from arrival to the controller's decision. The order is that of Linux, since each step uses the
//! results of the previous ones:
//!
//! 1. whether the left edge advances
//! 2. SACK blocks (`sack`), marks (`marks`)
//! 3. removal of acknowledged segments from the scoreboard; round-trip times; the receiver's window (in Linux: step 1)
//! 4. RACK's window; an answer to a loss probe
//! 5. the state of recovery: losses, undo (`recovery`)
//! 6. the timer
//! 7. the rate sample
//! 8. cwnd: by proportional rate reduction or by the controller

use super::Sender;
use super::episode::is_reducing;
use super::facts::{AckFacts, timestamp_rtt};
use super::scoreboard::Flags;
use super::work::{Push, Rexmit};
use crate::packet::{AckPacket, Timestamp};
use rand_core::Rng;
use thalweg_cc::{Ack, CaState};
use thalweg_units::{Bytes, Packets, Span, Time};

/// State of the sender before an ACK.
struct Prior {
    una: u64,
    sacked_end: u64,
    in_flight: Packets,
    delivered: u64,
    lost: u64,
}

/// The segments that an ACK removes from the scoreboard.
struct Acked {
    segments: u64,
    bytes: u64,
    /// Send times of the first and last removed segments that were sent only once and not selectively acknowledged
    /// before.
    first_sent_at: Option<Time>,
    last_sent_at: Time,
    /// The lowest of these segments; `u64::MAX` without any.
    reordered_from: u64,
}

struct Rtts {
    /// RTT of the newest newly acknowledged segment, or from the timestamp, for the controller.
    newest: Option<Span>,
    /// RTT of the oldest newly acknowledged segment, measured from its send time rather than from a timestamp.
    exact: Option<Span>,
    /// RTT of the oldest newly selectively acknowledged segment.
    sacked: Option<Span>,
}

impl Sender {
    /// Handles an ACK. Returns [`Rtts::exact`].
    pub(super) fn on_ack(&mut self, now: Time, packet: &AckPacket, rng: &mut dyn Rng) -> Option<Span> {
        if packet.next.0 > self.board.next() {
            return None;
        }
        let mut facts = AckFacts::new(packet.tsecr);
        let prior = self.prior();
        self.peer_tsval = self.peer_tsval.max(packet.tsval);
        self.work.push = Push::All;
        self.work.is_space_due = true;

        if packet.next.0 < prior.una {
            facts.is_overtaken = true;
            self.on_overtaken_ack(now, packet, prior.una, &mut facts, rng);
            return None;
        }
        if self.board.is_watched {
            self.check_app_limited();
        }
        if packet.next.0 > prior.una {
            facts.is_advancing = true;
            self.episode.timeouts_in_row = 0;
        }
        if !packet.sack.is_empty() {
            self.on_sack_blocks(now, packet, prior.una, &mut facts);
            self.rate.delivered += facts.out_of_order;
            self.check_reordering(&facts);
        }
        facts.is_marked = self.take_marks(packet);
        if self.board.packets_out() == 0 {
            self.update_window(packet, &mut facts);
            if facts.is_dsack {
                self.alert(now, rng, prior.una, &mut facts);
            }
            self.on_probe_answer(now, rng, packet.next.0, &mut facts);
            return None;
        }

        let rtts = self.remove_acked(now, packet.next.0, &prior, &mut facts);
        self.update_window(packet, &mut facts);
        self.rack.adapt_window(facts.delivery.prior_delivered(), self.rate.delivered);
        self.on_probe_answer(now, rng, packet.next.0, &mut facts);
        if !facts.is_not_duplicate() || facts.is_alarming() || self.state != CaState::Open {
            self.alert(now, rng, prior.una, &mut facts);
        }
        if facts.is_timer_due {
            self.reset_timer(now);
        }
        let ack = self.ack_for_controller(now, &prior, &facts, rtts.newest);
        self.control_cwnd(now, &ack, &facts, rng);
        rtts.exact
    }

    #[inline]
    fn prior(&self) -> Prior {
        Prior {
            una: self.board.una(),
            sacked_end: self.board.sacked_end(),
            in_flight: self.board.in_flight(),
            delivered: self.rate.delivered,
            lost: self.board.lost_total(),
        }
    }

    /// Handles an ACK below the left edge. As in Linux, segments that its blocks report do not count as delivered.
    fn on_overtaken_ack(
        &mut self,
        now: Time,
        packet: &AckPacket,
        prior_una: u64,
        facts: &mut AckFacts,
        rng: &mut dyn Rng,
    ) {
        if !packet.sack.is_empty() {
            self.on_sack_blocks(now, packet, prior_una, facts);
            self.check_reordering(facts);
            self.alert(now, rng, prior_una, facts);
        }
    }

    /// Returns the ACK in the controller's form, with the rate sample that it completes.
    #[inline]
    fn ack_for_controller(&mut self, now: Time, prior: &Prior, facts: &AckFacts, rtt: Option<Span>) -> Ack {
        let delivered = self.rate.delivered - prior.delivered;
        let lost = self.board.lost_total() - prior.lost;
        Ack {
            acked: Packets(delivered),
            lost: Packets(lost),
            prior_inflight: prior.in_flight,
            rtt,
            is_delayed: facts.is_delayed,
            is_marked: facts.is_marked,
            is_probe_answer: facts.is_probe_answer,
            rate: self.rate.sample(now, delivered, &facts.delivery, self.totals(), self.rtt.min_rtt()),
        }
    }

    /// Updates the receiver's window, which starts at the left edge; acknowledged segments must have been removed.
    fn update_window(&mut self, packet: &AckPacket, facts: &mut AckFacts) {
        let Bytes(una) = self.board.una_bytes();
        let end = Bytes(una) + packet.window;
        if facts.is_advancing || end > self.window_end {
            facts.is_window_update = true;
            self.window_end = self.window_end.max(end);
            self.window_max = self.window_max.max(packet.window);
        }
    }

    /// Detects reordering: a SACK block shows that the original of a segment arrived after a higher one.
    fn check_reordering(&mut self, facts: &AckFacts) {
        let counts = self.state != CaState::Loss || self.episode.undo_marker.is_some();
        if counts && facts.reordered_from != u64::MAX {
            self.rack.on_reordering(facts.reordered_from, self.board.sacked_end());
        }
    }

    fn remove_acked(&mut self, now: Time, next: u64, prior: &Prior, facts: &mut AckFacts) -> Rtts {
        let prior_sacked = self.board.sacked_out();
        let acked = self.pop_acked(now, next, facts);
        if facts.is_marked {
            self.count_marked(self.rate.delivered - prior.delivered);
        }
        let rtts = self.sample_rtts(now, &acked, prior_sacked, facts);
        if facts.is_data_acked {
            facts.is_timer_due = true;
            // A segment that was sent only once has filled a hole.
            if acked.reordered_from < prior.sacked_end {
                self.rack.on_reordering(acked.reordered_from, self.board.sacked_end());
            }
        } else if let (Some(sacked), Some(head)) = (rtts.sacked, self.board.head()) {
            // A segment sent before the latest copy of the first segment has arrived: the timeout of that copy may
            // restart. Those sent after it would postpone the timeout without end.
            facts.is_timer_due = sacked > now.since(head.sent_at);
        }
        if acked.segments > 0 || rtts.newest.is_some() {
            let conn = self.conn(now);
            self.cc.on_packets_acked(&conn, Packets(acked.segments), rtts.newest, &mut self.window);
            self.obey_hold();
        }
        rtts
    }

    #[inline]
    fn pop_acked(&mut self, now: Time, next: u64, facts: &mut AckFacts) -> Acked {
        let mut last_flags = Flags::default();
        let mut acked =
            Acked { segments: 0, bytes: 0, first_sent_at: None, last_sent_at: Time::ZERO, reordered_from: u64::MAX };
        while self.board.una() < next {
            let seq = self.board.una();
            let (segment, counts) = self.board.pop().expect("what is below next was sent");
            let flags = segment.flags;
            last_flags = flags;
            if flags.has(Flags::EVER_RETRANSMITTED.or(Flags::RETRANSMITTED)) {
                facts.is_resent_acked = true;
            } else if !flags.has(Flags::SACKED) {
                acked.last_sent_at = segment.sent_at;
                acked.first_sent_at.get_or_insert(segment.sent_at);
                acked.reordered_from = acked.reordered_from.min(seq);
                facts.is_original_acked |= seq < self.episode.high_seq;
            }
            if !flags.has(Flags::SACKED) {
                self.rate.delivered += 1;
                let is_needless = flags.has(Flags::EVER_RETRANSMITTED) && facts.tsecr < Timestamp::at(segment.sent_at);
                if !is_needless {
                    self.rack.on_delivered(now, seq, segment.sent_at, flags, self.rtt.min_rtt());
                }
                self.rate.on_delivered(seq, &segment, counts, &mut facts.delivery);
            }
            acked.segments += 1;
            acked.bytes += u64::from(segment.len);
            facts.is_data_acked = true;
        }
        if self.board.is_watched && acked.segments > 0 && !last_flags.has(Flags::SACKED) {
            facts.delivery.count_burst(next - 1, self.board.rest_of_burst(last_flags, next));
        }
        if acked.segments > 0 {
            self.board.trim();
            self.rack.trim(next);
        }
        acked
    }

    /// Samples the round-trip times: that of the oldest segment for the smoothed RTT, that of the newest for the
    /// minimum RTT and the controller.
    #[inline]
    fn sample_rtts(&mut self, now: Time, acked: &Acked, prior_sacked: u64, facts: &mut AckFacts) -> Rtts {
        let mut oldest = None;
        let mut newest = None;
        if let Some(first) = acked.first_sent_at.filter(|_| !facts.is_resent_acked) {
            oldest = Some(now.since(first));
            newest = Some(now.since(acked.last_sent_at));
            // A lone short segment: the receiver may have waited for a second one.
            facts.is_delayed = acked.segments == 1
                && prior_sacked == 0
                && acked.bytes < self.config.mss.0
                && facts.delivery.prior_delivered().is_some_and(|prior| prior + 1 == self.rate.delivered)
                && !facts.is_data_sacked
                && !facts.is_dsack;
        }
        let sacked = facts.first_sacked_at.map(|first| now.since(first));
        if sacked.is_some() {
            newest = Some(now.since(facts.last_sacked_at));
        }
        oldest = oldest.or(sacked);
        // `on_ack` returns only this RTT. An RTT from a timestamp is used only by the estimators and the controller.
        let exact = oldest;
        if oldest.is_none() && facts.is_data_acked {
            oldest = Some(timestamp_rtt(now, facts.tsecr));
            newest = oldest;
        }
        if let (Some(oldest), Some(newest)) = (oldest, newest) {
            self.rtt.sample_min(now, newest, facts.is_delayed);
            self.rtt.sample(oldest, self.board.una(), self.board.next());
        }
        Rtts { newest, exact, sacked }
    }

    fn control_cwnd(&mut self, now: Time, ack: &Ack, facts: &AckFacts, rng: &mut dyn Rng) {
        if self.is_governed {
            self.lend_to_controller(now, ack, rng);
            return;
        }
        if is_reducing(self.state) {
            let may_grow = facts.is_advancing && ack.lost == Packets::ZERO;
            self.reduce_cwnd(ack.acked, may_grow);
        } else if self.may_raise_cwnd(facts) {
            self.lend_to_controller(now, ack, rng);
            self.usage.cwnd_stamp = now;
        }
        self.update_pacing_rate();
    }

    fn lend_to_controller(&mut self, now: Time, ack: &Ack, rng: &mut dyn Rng) {
        let conn = self.conn(now);
        self.cc.on_ack(&conn, ack, &mut self.window, rng);
        self.obey_hold();
    }

    /// Whether the ACK allows cwnd to grow: it delivers in order, or in any order on a path with strong reordering.
    fn may_raise_cwnd(&self, facts: &AckFacts) -> bool {
        let is_in_order = facts.is_data_acked;
        is_in_order || (self.rack.reordering > super::rack::DUP_THRESHOLD && facts.is_data_sacked)
    }

    /// Performs one step of proportional rate reduction.
    pub(super) fn reduce_cwnd(&mut self, delivered: Packets, may_grow: bool) {
        if delivered > Packets::ZERO {
            let in_flight = self.board.in_flight();
            self.window.cwnd = self.prr.cwnd(delivered, may_grow, in_flight, self.window.ssthresh);
        }
    }

    pub(super) fn request_retransmission(&mut self) {
        self.work.rexmit = Rexmit::Lost;
    }
}
