//! The receiver's feedback of marks (CE).
//!
//! | feedback | ECE | immediate ACKs |
//! | --- | --- | --- |
//! | classic (RFC 3168, section 6.1.3) | from a mark until a segment with CWR | at the first mark, at CWR |
//! | DCTCP (RFC 8257, section 3.2) | if the latest acknowledged segment was marked | at each change, at CWR |
//! | accurate (RFC 9768) | unused; every ACK has the number of marked segments | at the first mark after unmarked segments |
//!
//! As in Linux, a segment that is not ECN-capable counts as a retransmission once an ECN-capable one has arrived, and
//! the next ACKs are immediate.

use super::Receiver;
use super::ack_policy::ECN_QUICK_MAX;
use crate::packet::{AckPacket, Data, Seq, Timestamp, ToSender};
use thalweg_cc::EcnFeedback;
use thalweg_units::{Bytes, Ecn, Time};

impl Receiver {
    /// The ACK of a CWR segment is immediate, since the sender's window may be small.
    pub(super) fn on_cwr(&mut self) {
        if self.ecn.feedback.is_some() {
            self.ecn.is_ece = false;
            self.acks.force_now();
        }
    }

    /// Handles the ECN field of a segment that was in order or beyond a gap. If it was in order, the left edge has
    /// already advanced.
    pub(super) fn on_ecn_field(&mut self, now: Time, data: &Data) {
        let Some(feedback) = self.ecn.feedback else { return };
        if data.ecn == Ecn::NotEct {
            if self.ecn.is_seen {
                self.acks.enter_quick(self.window.advertised(), ECN_QUICK_MAX);
            }
            return;
        }
        self.ecn.is_seen = true;
        let is_ce = data.ecn == Ecn::Ce;
        let is_change = is_ce != self.ecn.is_ce;
        self.ecn.ce_segments = self.ecn.ce_segments.wrapping_add(u32::from(is_ce));
        match feedback {
            EcnFeedback::Classic if is_ce && !self.ecn.is_ece => {
                self.acks.enter_quick(self.window.advertised(), ECN_QUICK_MAX);
                self.ecn.is_ece = true;
            }
            EcnFeedback::Classic => {}
            EcnFeedback::Dctcp => {
                if is_change {
                    self.send_delayed_before(now);
                    self.acks.force_now();
                }
                self.ecn.is_ece = is_ce;
            }
            EcnFeedback::Accurate if is_ce && is_change => self.acks.force_now(),
            EcnFeedback::Accurate => {}
        }
        self.ecn.is_ce = is_ce;
        self.ecn.next = self.stream.next();
        self.ecn.next_bytes = self.stream.next_bytes();
    }

    /// Sends a pending delayed ACK before the CE state changes. It covers the segments up to the previous ECN-capable
    /// one, with the previous state.
    fn send_delayed_before(&mut self, now: Time) {
        if !self.acks.is_delayed() {
            return;
        }
        self.ecn.is_ece = self.ecn.is_ce;
        let window = self.window.select(self.ecn.next_bytes, self.stream.held());
        self.outbox.push_back(ToSender::Ack(AckPacket {
            next: Seq(self.ecn.next),
            window: Bytes(window.size),
            is_ece: self.ecn.is_ece,
            ce_segments: self.ecn.ce_segments,
            tsval: Timestamp::at(now),
            tsecr: self.ts_recent,
            sack: self.stream.take_blocks(),
        }));
    }
}
