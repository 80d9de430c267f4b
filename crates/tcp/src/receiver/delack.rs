//! The time at which an ACK is sent.
//!
//! An ACK is sent immediately when more than one full segment is unacknowledged, in quick mode, and when something
//! requires it. Without a gap, it is also immediate after a segment that indicates the end of a write (a short one, or
//! one with the PSH flag), and otherwise sent after an adaptive delay.
//!
//! Senders set PSH on the last segment of a burst of several (Linux does so to help receive offload), so only the ACKs
//! of single segments are delayed. Kernels before 6.6, and before the stable series of autumn 2023, ignored PSH on full
//! segments.
//!
//! Beyond a gap, the first segments are acknowledged immediately, and later ones by compressed ACKs (SACK compression).
//!
//! Not modelled: ACKs sent only because the application has read and the window has opened.

use super::Receiver;
use super::ack_policy::DELAY_MIN;
use crate::tick::expiry;
use thalweg_units::{Span, Time};

/// Maximum delay of an ACK: TCP_DELACK_MAX.
const DELAY_MAX: Span = Span::from_millis(200);
/// Maximum delay if no segment since the last ACK indicated the end of a write, before [`DELAY_MAX`] is applied.
const SLOW_DELAY_MAX: Span = Span::from_millis(500);
/// Number of immediate ACKs beyond a gap: the number that triggers a fast retransmission.
const DUPLICATES_AT_ONCE: u32 = 3;
/// Maximum number of ACKs that one compressed ACK replaces: net.ipv4.tcp_comp_sack_nr.
const COMPRESSED_MAX: u32 = 44;
/// Maximum delay of a compressed ACK: net.ipv4.tcp_comp_sack_delay_ns.
const COMPRESSED_DELAY_MAX: Span = Span::from_millis(1);

impl Receiver {
    pub(super) fn decide_ack(&mut self, now: Time) {
        if !self.acks.is_scheduled || self.acks.is_merged {
            return;
        }
        if self.is_second_segment_waiting() || self.acks.quick > 0 || self.acks.is_forced {
            self.send_ack(now);
        } else if !self.stream.has_gap() {
            self.delay_ack(now);
        } else {
            self.compress_ack(now);
        }
    }

    pub(super) fn decide_ack_after_read(&mut self, now: Time) {
        if !self.acks.is_scheduled || self.acks.is_merged {
            return;
        }
        let is_drained = !self.stream.has_gap();
        if self.is_second_segment_waiting() || (self.acks.is_pushed && is_drained) {
            self.send_ack(now);
        }
    }

    fn is_second_segment_waiting(&self) -> bool {
        self.stream.next_bytes() - self.acked_bytes > u64::from(self.acks.full_size)
    }

    fn delay_ack(&mut self, now: Time) {
        let mut delay = self.acks.delay.unwrap_or(DELAY_MIN);
        if delay > DELAY_MIN {
            let mut most = if self.acks.is_pushed { DELAY_MAX } else { SLOW_DELAY_MAX };
            if let Some(srtt) = self.srtt {
                most = most.min(srtt.max(DELAY_MIN));
            }
            delay = delay.min(most);
        }
        delay = delay.min(DELAY_MAX);
        let mut due = expiry(now, delay);
        if let Some(earlier) = self.acks.due {
            // The ACK is almost due: send it now.
            if earlier <= now + Span(delay.0 / 4) {
                self.send_ack(now);
                return;
            }
            due = due.min(earlier);
        }
        self.acks.due = Some(due);
        self.acks.timer = Some(due);
    }

    fn compress_ack(&mut self, now: Time) {
        let acks = &mut self.acks;
        if acks.compressed >= COMPRESSED_MAX {
            self.send_ack(now);
            return;
        }
        if acks.duplicates_at != self.stream.next() {
            acks.duplicates_at = self.stream.next();
            acks.duplicates = 0;
        }
        if acks.duplicates < DUPLICATES_AT_ONCE {
            acks.duplicates += 1;
            self.send_ack(now);
            return;
        }
        acks.compressed += 1;
        if acks.compressed_due.is_none() {
            let rtt = self.window.rtt();
            let rtt = self.srtt.map_or(rtt, |srtt| srtt.min(rtt));
            let due = now + Span(rtt.0 / 20).min(COMPRESSED_DELAY_MAX);
            acks.compressed_due = acks.timer.filter(|timer| (now..due).contains(timer)).or(Some(due));
        }
    }

    pub(super) fn flush_compressed(&mut self, now: Time) {
        if self.acks.compressed > 0 {
            self.send_ack(now);
        }
    }

    pub(super) fn on_ack_timer(&mut self, now: Time) {
        if self.acks.compressed_due.is_some_and(|due| due <= now) {
            self.acks.compressed_due = None;
            if self.acks.compressed > 0 {
                self.send_ack(now);
            }
        }
        if self.acks.due.is_some_and(|due| due <= now) {
            self.acks.due = None;
            if self.acks.is_scheduled {
                // The second segment did not arrive in time: use a longer delay next time.
                let longer = Span(self.acks.delay.unwrap_or(DELAY_MIN).0 * 2).min(self.rto());
                self.acks.delay = Some(longer);
                self.send_ack(now);
            }
        }
    }
}
