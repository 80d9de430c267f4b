//! The three-way handshake, on the side that opens the connection and sends the data.
//!
//! The SYN is repeated after 1 s, 2 s, 4 s ... (RFC 6298, sections 2.1 and 5).
//!
//! Not modelled: since 6.5, the first five repetitions of Linux are a second apart, and only later intervals double.

use super::facts::timestamp_rtt;
use super::transmit::Departure;
use super::{Handshake, INITIAL_CWND, Sender, Timer};
use crate::packet::{SynAck, Timestamp};
use rand_core::Rng;
use thalweg_units::{Packets, Span, Time};

impl Sender {
    /// Opens the connection.
    ///
    /// # Panics
    /// If it was opened before.
    pub fn connect(&mut self, now: Time) {
        assert_eq!(self.handshake, Handshake::Closed, "a connection is opened once");
        self.handshake = Handshake::SynSent;
        self.syn_sent_at = now;
        self.work.syn = true;
        self.set_timer(now, Timer::Retransmission, self.rtt.rto());
    }

    pub(super) fn on_syn_timeout(&mut self, now: Time) {
        self.counters.syn_retransmits += 1;
        self.work.syn = true;
        self.rtt.back_off();
        self.set_timer(now, Timer::Retransmission, self.rtt.rto());
    }

    /// Handles the receiver's answer. Returns the round-trip time; `None` for a repeated answer.
    pub(super) fn on_syn_ack(&mut self, now: Time, packet: &SynAck, rng: &mut dyn Rng) -> Option<Span> {
        self.peer_tsval = self.peer_tsval.max(packet.tsval);
        if self.handshake != Handshake::SynSent {
            // The third packet of the handshake may have been lost: send it again.
            self.work.established = self.handshake == Handshake::Established;
            return None;
        }
        self.handshake = Handshake::Established;
        self.timer = None;
        let rtt = if self.counters.syn_retransmits == 0 {
            now.since(self.syn_sent_at)
        } else {
            timestamp_rtt(now, packet.tsecr)
        };
        self.rtt.sample_min(now, rtt, false);
        self.rtt.sample(rtt, 0, 0);
        // The SYN counts as a delivered segment, as in Linux.
        self.rate.delivered = 1;
        self.rate.delivered_at = now;
        self.ecn.feedback = self.config.ecn.filter(|_| packet.is_ecn);
        self.ecn.codepoint = self.cc.ecn_codepoint();
        self.window_end = packet.window;
        self.window_max = packet.window;
        self.usage.cwnd_stamp = now;
        self.usage.last_sent_at = now;
        // The initial window is reduced only after two or more SYN timeouts, and not if the first SYN was answered.
        let is_first_lost = packet.tsecr != Timestamp::at(self.syn_sent_at);
        let is_path_bad = self.counters.syn_retransmits > 1 && is_first_lost;
        self.window.cwnd = if is_path_bad { Packets(1) } else { INITIAL_CWND };
        let conn = self.conn(now);
        self.cc.on_established(&conn, &mut self.window, rng);
        self.obey_hold();
        self.update_pacing_rate();
        self.expand_sndbuf();
        self.work.established = true;
        self.sndbuf.begin_writing();
        Some(rtt)
    }

    /// Whether the SYN requests ECN. A repeated SYN does not, because a middlebox may have dropped the first one for
    /// it.
    pub(super) fn asks_for_ecn(&self) -> bool {
        self.config.ecn.is_some() && self.counters.syn_retransmits == 0
    }

    pub(super) fn poll_handshake(&mut self) -> Option<Departure> {
        if std::mem::take(&mut self.work.syn) && self.handshake == Handshake::SynSent {
            return Some(Departure::Syn);
        }
        if std::mem::take(&mut self.work.established) {
            return Some(Departure::Established);
        }
        None
    }
}
