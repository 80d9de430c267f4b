//! Selects the next packet to send.
//!
//! The order is: the handshake; the first segment after a timeout; a loss probe; lost segments; new segments. While
//! F-RTO checks a timeout, new segments precede lost ones. Lost and new segments are subject to cwnd and pacing, new
//! data also to the receiver's window.
//!
//! There are no zero-window probes: the receiving application reads immediately, so the window never closes.

use super::defer::Deferral;
use super::episode::is_reducing;
use super::scoreboard::{Flags, Segment};
use super::work::{Push, Rexmit};
use super::{Sender, Timer};
use crate::packet::{Data, Established, Seq, Syn, Timestamp, ToReceiver};
use rand_core::Rng;
use thalweg_units::{Bytes, Packets, Time};

#[derive(Clone, Copy, Debug)]
pub(super) enum Departure {
    Syn,
    /// The third packet of the handshake.
    Established,
    Segment(u64),
}

impl Sender {
    /// Returns the next packet to send at `now`. Call it until it returns `None`.
    ///
    /// Inlined so that the packet is constructed at its final location: an immediate copy would stall until the
    /// processor has completed the stores of its fields.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, rng: &mut dyn Rng) -> Option<ToReceiver> {
        let tsval = Timestamp::at(now);
        Some(match self.next_departure(now, rng)? {
            Departure::Segment(seq) => {
                let segment = self.board.segment(seq);
                let (ecn, is_cwr) = self.ecn.stamp(segment.flags.has(Flags::EVER_RETRANSMITTED));
                ToReceiver::Data(Data {
                    seq: Seq(seq),
                    offset: Bytes(segment.offset),
                    len: u32::from(segment.len),
                    is_push: segment.flags.has(Flags::PUSHED),
                    ecn,
                    is_cwr,
                    tsval,
                    tsecr: self.peer_tsval,
                })
            }
            Departure::Syn => ToReceiver::Syn(Syn { is_ecn: self.asks_for_ecn(), tsval }),
            Departure::Established => ToReceiver::Established(Established { tsval, tsecr: self.peer_tsval }),
        })
    }

    fn next_departure(&mut self, now: Time, rng: &mut dyn Rng) -> Option<Departure> {
        if self.work.syn || self.work.established {
            return self.poll_handshake();
        }
        self.next_segment(now, rng).map(Departure::Segment)
    }

    fn next_segment(&mut self, now: Time, rng: &mut dyn Rng) -> Option<u64> {
        if std::mem::take(&mut self.work.head) && self.board.packets_out() > 0 {
            let head = self.board.una();
            self.retransmit(now, rng, head, false);
            return Some(head);
        }
        if std::mem::take(&mut self.work.probe) {
            if let Some(seq) = self.send_probe(now, rng) {
                return Some(seq);
            }
        }
        if self.work.rexmit == Rexmit::New {
            if let Some(seq) = self.send_new(now, rng) {
                return Some(seq);
            }
            if self.board.next() > self.episode.high_seq {
                self.work.rexmit = Rexmit::None;
            } else {
                self.episode.is_frto = false;
                self.work.rexmit = Rexmit::Lost;
            }
        }
        if self.work.rexmit == Rexmit::Lost {
            if let Some(seq) = self.send_lost(now, rng) {
                return Some(seq);
            }
            self.work.rexmit = Rexmit::None;
            if std::mem::take(&mut self.work.is_head_resent) && self.pending_timer() != Some(Timer::Reordering) {
                self.set_timer_after_pacing(now, Timer::Retransmission, self.rtt.rto());
            }
        }
        loop {
            if self.work.push != Push::Nothing {
                if let Some(seq) = self.send_new(now, rng) {
                    return Some(seq);
                }
                self.end_push(now);
            }
            if std::mem::take(&mut self.work.is_space_due) {
                self.check_space(now);
            }
            self.work.push = self.write_on(now, rng);
            if self.work.push == Push::Nothing {
                return None;
            }
        }
    }

    fn end_push(&mut self, now: Time) {
        self.work.push = Push::Nothing;
        self.work.has_begun_burst = false;
        // Without data to send, an ACK does not show what limits the connection.
        let is_due = std::mem::take(&mut self.work.is_stock_due);
        if is_due || self.work.sent > 0 || self.board.next_bytes().0 < self.sndbuf.queued {
            self.take_stock(now);
        }
    }

    /// Whether there is new data, and the receiver's window has space for a full segment of it or for all of it.
    pub(super) fn has_sendable_data(&self) -> bool {
        let Bytes(next) = self.board.next_bytes();
        let unsent = self.sndbuf.queued - next;
        unsent > 0 && next + unsent.min(self.config.mss.0) <= self.window_end.0
    }

    fn send_lost(&mut self, now: Time, rng: &mut dyn Rng) -> Option<u64> {
        if self.board.in_flight() >= self.window.cwnd {
            return None;
        }
        let seq = self.board.first_to_retransmit()?;
        if self.must_wait_for_departure(now) {
            return None;
        }
        self.work.is_head_resent |= seq == self.board.una();
        self.retransmit(now, rng, seq, false);
        if is_reducing(self.state) {
            self.prr.on_sent();
        }
        Some(seq)
    }

    fn send_new(&mut self, now: Time, rng: &mut dyn Rng) -> Option<u64> {
        if self.pacer.left == 0 {
            if self.work.push == Push::OneBurst && self.work.has_begun_burst {
                return None;
            }
            let segments = self.next_burst(now)?;
            self.pacer.begin(now, segments);
            self.work.has_begun_burst = true;
        }
        if self.work.sent == 0 {
            self.work.was_idle = self.board.packets_out() == 0;
        }
        self.work.sent += 1;
        self.sndbuf.count_sent();
        let seq = self.send_segment(now, rng);
        if is_reducing(self.state) {
            self.prr.on_sent();
        }
        Some(seq)
    }

    /// Returns the number of segments that may be sent as a burst now, if any.
    fn next_burst(&mut self, now: Time) -> Option<u64> {
        let mss = self.config.mss.0;
        let Bytes(next) = self.board.next_bytes();
        let unsent = self.sndbuf.queued - next;
        let room = self.window.cwnd.saturating_sub(self.board.in_flight());
        if unsent == 0 || room == Packets::ZERO || !self.has_sendable_data() {
            return None;
        }
        let (end, is_last_piece) = self.sndbuf.head()?;
        let piece = end - next;
        if self.must_wait_for_departure(now) {
            return None;
        }
        let burst_size = self.burst_size();
        let deferral = match self.work.push {
            Push::OneBurst => Deferral::Now,
            _ => self.deferral(now, burst_size, piece, is_last_piece),
        };
        match deferral {
            Deferral::Now => {}
            Deferral::ForCwnd => {
                self.work.is_deferred_for_cwnd = true;
                return None;
            }
            Deferral::Wait => return None,
        }
        // The last segment is cut at the end of the receiver's window.
        let sendable = piece.min(self.window_end.0 - next);
        let is_rest_held = is_last_piece && self.work.push == Push::WholeSegments;
        let segments = if is_rest_held { sendable / mss } else { sendable.div_ceil(mss) };
        // A burst is at most half of cwnd, but at least one segment.
        let half = (self.window.cwnd.0 / 2).max(1);
        Some(half.min(room.0).min(burst_size).min(segments)).filter(|segments| *segments > 0)
    }

    pub(super) fn send_segment(&mut self, now: Time, rng: &mut dyn Rng) -> u64 {
        let offset = self.board.next_bytes();
        let (piece_end, _) = self.sndbuf.head().expect("there is something to send");
        let len = (piece_end.min(self.window_end.0) - offset.0).min(self.config.mss.0) as u16;
        debug_assert!(len > 0, "a segment has payload");
        self.before_data(now, rng);
        if self.board.packets_out() == 0 {
            self.rate.restart(now);
        }
        let mut segment = Segment {
            sent_at: now,
            first_sent_at: now,
            delivered_at: now,
            delivered: 0,
            offset: offset.0,
            len,
            flags: Flags::default(),
        };
        self.rate.stamp(&mut segment);
        let is_end_of_burst = self.pacer.left == 1;
        let is_end_of_push = self.sndbuf.on_sent(offset.0 + u64::from(len));
        let is_push = is_end_of_push || (is_end_of_burst && self.pacer.size > 1);
        if is_end_of_burst {
            segment.flags.set(Flags::BURST_END);
        }
        if is_push {
            segment.flags.set(Flags::PUSHED);
        }
        let seq = self.board.next();
        self.board.push(segment, self.send_counts());
        self.after_data(len);
        seq
    }

    /// Retransmits segment `seq`. The retransmission of a loss probe does not count as in flight.
    pub(super) fn retransmit(&mut self, now: Time, rng: &mut dyn Rng, seq: u64, is_probe: bool) {
        self.pacer.begin(now, 1);
        self.before_data(now, rng);
        let counts = self.send_counts();
        let segment = self.board.mark_retransmitted(seq, is_probe, counts);
        segment.sent_at = now;
        self.rate.stamp(segment);
        let len = segment.len;
        self.rack.on_retransmitted(now, seq);
        self.counters.retransmits += 1;
        if !is_probe {
            self.episode.on_retransmitted(now);
        }
        self.after_data(len);
    }

    fn before_data(&mut self, now: Time, rng: &mut dyn Rng) {
        if self.board.in_flight() == Packets::ZERO {
            let conn = self.conn(now);
            self.cc.on_transmit_start(&conn, &mut self.window, rng);
            self.obey_hold();
        }
        self.usage.last_sent_at = now;
    }

    fn after_data(&mut self, len: u16) {
        self.counters.segments += 1;
        self.bytes_sent += u64::from(len);
        let rate = self.pacing_rate();
        self.pacer.on_sent(u32::from(len), self.counters.segments, rate);
    }

    /// Updates whether cwnd is the limit and, if new segments were sent, the timer.
    fn take_stock(&mut self, now: Time) {
        let work = &mut self.work;
        let sent = std::mem::take(&mut work.sent);
        let is_limited = std::mem::take(&mut work.is_deferred_for_cwnd) || self.board.in_flight() >= self.window.cwnd;
        if sent > 0 || is_limited {
            self.validate_cwnd(now, is_limited);
        }
        if sent == 0 {
            return;
        }
        if !self.schedule_probe(now, false) && (self.work.was_idle || self.pending_timer() == Some(Timer::LossProbe)) {
            self.rearm_rto(now);
        }
    }
}
