//! State for the timing of ACKs: quick mode, the delay, the size of a full segment, and ACK compression.

use crate::packet::Data;
use thalweg_units::{Span, Time};

/// Minimum delay of an ACK, and the delay after quick mode: TCP_ATO_MIN and TCP_DELACK_MIN.
pub(super) const DELAY_MIN: Span = Span::from_millis(40);
/// Maximum number of ACKs in quick mode: TCP_MAX_QUICKACKS.
pub(super) const QUICK_MAX: u64 = 16;
/// Maximum number of quick ACKs that the ECN field of a segment requests.
pub(super) const ECN_QUICK_MAX: u64 = 2;
/// Assumed payload of a segment before the first one has arrived: TCP_MSS_DEFAULT.
const SIZE_DEFAULT: u32 = 536;
/// A segment shorter than this is not full-sized: TCP_MSS_DEFAULT less 12 bytes of options.
const SHORT_SIZE_MIN: u32 = SIZE_DEFAULT - 12;

#[derive(Debug)]
pub(super) struct AckPolicy {
    /// Number of ACKs left in quick mode.
    pub(super) quick: u64,
    /// Delay of an ACK; `None` before the first segment.
    pub(super) delay: Option<Span>,
    /// Arrival time of the latest in-order segment.
    pub(super) last_at: Time,
    pub(super) full_size: u32,
    /// Payload of the latest in-order segment, if it was short but might be the sender's full size.
    pub(super) last_short_size: u32,
    /// Whether there is anything to acknowledge.
    pub(super) is_scheduled: bool,
    pub(super) is_forced: bool,
    /// Whether a segment since the last ACK indicated the end of a write.
    pub(super) is_pushed: bool,
    /// Whether more segments of the same merged packet follow.
    pub(super) is_merged: bool,
    /// Time at which a delayed ACK is due.
    pub(super) due: Option<Time>,
    /// Expiry of the delayed-ACK timer as last set. Sending an ACK does not stop the timer.
    pub(super) timer: Option<Time>,
    /// Number of immediate ACKs beyond the current gap, without those sent for another reason.
    pub(super) duplicates: u32,
    /// The left edge at which `duplicates` was counted.
    pub(super) duplicates_at: u64,
    /// Number of ACKs not sent, which the compressed ACK will replace.
    pub(super) compressed: u32,
    pub(super) compressed_due: Option<Time>,
}

impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy {
            quick: 0,
            delay: None,
            last_at: Time::ZERO,
            full_size: SIZE_DEFAULT,
            last_short_size: 0,
            is_scheduled: false,
            is_forced: false,
            is_pushed: false,
            is_merged: false,
            due: None,
            timer: None,
            duplicates: 0,
            duplicates_at: 0,
            compressed: 0,
            compressed_due: None,
        }
    }
}

impl AckPolicy {
    /// Returns the payload of a full segment.
    pub fn full_size(&self) -> u32 {
        self.full_size
    }

    /// Returns the time of the next event.
    pub fn next_wake(&self) -> Option<Time> {
        match (self.due, self.compressed_due) {
            (Some(due), Some(compressed)) => Some(due.min(compressed)),
            (due, compressed) => due.or(compressed),
        }
    }

    /// Records that there is something to acknowledge.
    pub fn schedule(&mut self) {
        self.is_scheduled = true;
    }

    /// Requires an immediate ACK.
    pub fn force_now(&mut self) {
        self.is_forced = true;
    }

    /// Makes the next ACK immediate.
    pub fn force_one_quick(&mut self) {
        self.quick |= 1;
    }

    /// Ends quick mode.
    pub fn stop_quick(&mut self) {
        self.quick = 0;
    }

    /// Enters quick mode for one ACK per two full segments of `window`, in bytes (two if it holds fewer), but at most
    /// `max`. Resets the delay.
    pub fn enter_quick(&mut self, window: u64, max: u64) {
        self.add_quick(window, max);
        self.delay = Some(DELAY_MIN);
    }

    /// Whether a delayed ACK is pending.
    pub fn is_delayed(&self) -> bool {
        self.due.is_some()
    }

    fn add_quick(&mut self, window: u64, max: u64) {
        let half = window / (2 * u64::from(self.full_size));
        let acks = if half == 0 { 2 } else { half }.min(max);
        self.quick = self.quick.max(acks);
    }

    /// Handles a segment that has arrived in order.
    pub fn on_data(&mut self, now: Time, data: &Data, window: u64, rto: Span) {
        self.is_scheduled = true;
        self.measure_size(data.len, data.is_push);
        match self.delay {
            None => {
                self.add_quick(window, QUICK_MAX);
                self.delay = Some(DELAY_MIN);
            }
            Some(delay) => {
                let gap = now.since(self.last_at);
                if gap.0 <= DELAY_MIN.0 / 2 {
                    self.delay = Some(Span(delay.0 / 2 + DELAY_MIN.0 / 2));
                } else if gap < delay {
                    self.delay = Some(Span(delay.0 / 2 + gap.0).min(rto));
                } else if gap > rto {
                    // The sender has probably restarted its window.
                    self.add_quick(window, QUICK_MAX);
                }
            }
        }
        self.last_at = now;
    }

    fn measure_size(&mut self, len: u32, is_push: bool) {
        let last_short = std::mem::take(&mut self.last_short_size);
        if len >= self.full_size {
            self.full_size = len;
            self.is_pushed |= is_push;
            return;
        }
        if len >= SHORT_SIZE_MIN {
            self.last_short_size = len;
            if len == last_short {
                self.full_size = len;
                return;
            }
        }
        self.is_pushed = true;
    }

    /// Updates the state after an ACK was sent.
    pub fn on_sent(&mut self) {
        self.compressed = 0;
        self.compressed_due = None;
        let used = u64::from(self.is_scheduled);
        if self.quick > 0 {
            self.quick = self.quick.saturating_sub(used);
            if self.quick == 0 {
                self.delay = Some(DELAY_MIN);
            }
        }
        self.is_scheduled = false;
        self.is_forced = false;
        self.is_pushed = false;
        self.due = None;
    }
}
