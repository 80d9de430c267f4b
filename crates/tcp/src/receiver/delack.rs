//! When an ACK is sent.
//!
//! At once: when more than one full segment waits for one; in quick mode (up to 16 ACKs at the beginning, after a pause
//! and after a duplicate; also while the window grows); when the last gap is filled; after a short segment or one with the
//! PSH flag, which look like the end of a write. Else after 40 ms, adaptively more or less.
//!
//! Senders set PSH on the last segment of a burst of several (Linux does so for the sake of receive offload), so that only
//! what comes alone waits. Kernels before 6.6, and before the stable series of autumn 2023, did not look at PSH.
//!
//! Beyond a gap every segment is answered at once at first; from the fourth on one ACK stands for up to 45 segments or for
//! 5 % of the round-trip time, at most 1 ms (SACK compression).
//!
//! Left out: the slack of up to 100 us that Linux allows the timer of a compressed ACK; ACKs that only tell that the
//! application has read and the window has opened (it reads at once, and the window never closes).

use super::Receiver;
use crate::packet::Data;
use crate::tick::expiry;
use thalweg_units::{Span, Time};

/// Shortest wait, and the wait after quick mode: TCP_ATO_MIN and TCP_DELACK_MIN.
const DELAY_MIN: Span = Span::from_millis(40);
/// Longest wait: TCP_DELACK_MAX.
const DELAY_MAX: Span = Span::from_millis(200);
/// Longest wait when the last segment did not look like the end of a write: half a second, before the bound above.
const SLOW_DELAY_MAX: Span = Span::from_millis(500);
/// Most ACKs of quick mode: TCP_MAX_QUICKACKS.
const QUICK_MAX: u64 = 16;
/// What a segment is taken to hold before the first one has come: TCP_MSS_DEFAULT.
const SIZE_DEFAULT: u32 = 536;
/// A shorter segment than this is no sender's full size: TCP_MSS_DEFAULT less 12 bytes of options.
const SHORT_SIZE_MIN: u32 = SIZE_DEFAULT - 12;
/// ACKs beyond a gap that are sent at once: as many as make a fast retransmission.
const DUPLICATES_AT_ONCE: u32 = 3;
/// Most ACKs that one stands for: net.ipv4.tcp_comp_sack_nr.
const COMPRESSED_MAX: u32 = 44;
/// Longest that a compressed ACK waits: net.ipv4.tcp_comp_sack_delay_ns.
const COMPRESSED_DELAY_MAX: Span = Span::from_millis(1);

/// What speaks for an ACK.
#[derive(Debug)]
pub(super) struct AckPolicy {
    /// ACKs that quick mode has left.
    quick: u64,
    /// How long an ACK waits; none before the first segment.
    delay: Option<Span>,
    /// When the last segment came in order.
    last_at: Time,
    /// Payload of what counts as a full segment.
    full_size: u32,
    /// Payload of the last segment, if it was short and might be the sender's full size after all.
    last_short_size: u32,
    /// Whether there is something to acknowledge.
    is_scheduled: bool,
    /// Whether it must be acknowledged at once.
    is_forced: bool,
    /// Whether a short segment has come, or one that carries the PSH flag.
    is_pushed: bool,
    /// When a delayed ACK is due.
    due: Option<Time>,
    /// When the timer expires that was last set for one. An ACK that is sent does not stop it, and a compressed one does not
    /// outlast it.
    timer: Option<Time>,
    /// ACKs sent at once beyond the present gap.
    duplicates: u32,
    /// The left edge that these were counted at.
    duplicates_at: u64,
    /// ACKs that the next one stands for.
    compressed: u32,
    /// When that one is due.
    compressed_due: Option<Time>,
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
    /// Payload of what counts as a full segment.
    pub fn full_size(&self) -> u32 {
        self.full_size
    }

    /// When something is due.
    pub fn next_wake(&self) -> Option<Time> {
        [self.due, self.compressed_due].into_iter().flatten().min()
    }

    /// There is something to acknowledge.
    pub fn schedule(&mut self) {
        self.is_scheduled = true;
    }

    /// It must be acknowledged at once.
    pub fn force_now(&mut self) {
        self.is_forced = true;
    }

    /// The next ACK leaves at once.
    pub fn force_one_quick(&mut self) {
        self.quick |= 1;
    }

    /// The window is short: the sender has no use for quick ACKs.
    pub fn stop_quick(&mut self) {
        self.quick = 0;
    }

    /// The next ACKs leave at once, as many as could open the window again.
    pub fn enter_quick(&mut self, window: u64) {
        self.add_quick(window);
        self.delay = Some(DELAY_MIN);
    }

    fn add_quick(&mut self, window: u64) {
        let half = window / (2 * u64::from(self.full_size));
        let acks = if half == 0 { 2 } else { half.min(QUICK_MAX) };
        self.quick = self.quick.max(acks);
    }

    /// A segment has come in order.
    pub fn on_data(&mut self, now: Time, data: &Data, window: u64, rto: Span) {
        self.is_scheduled = true;
        self.measure_size(data.len, data.is_push);
        match self.delay {
            None => {
                self.add_quick(window);
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
                    self.add_quick(window);
                }
            }
        }
        self.last_at = now;
    }

    /// Learns what a full segment is.
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

    /// An ACK was sent.
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

impl Receiver {
    /// A segment has come: is it time for an ACK?
    pub(super) fn decide_ack(&mut self, now: Time) {
        if !self.acks.is_scheduled {
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

    /// The application has read: is it time for an ACK now?
    pub(super) fn decide_ack_after_read(&mut self, now: Time) {
        if !self.acks.is_scheduled {
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
            // As good as due.
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

    /// Sends the ACK that was held back, before the blocks change.
    pub(super) fn flush_compressed(&mut self, now: Time) {
        if self.acks.compressed > 0 {
            self.send_ack(now);
        }
    }

    /// A delayed or compressed ACK may be due.
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
                // The second segment did not come in time: wait longer for it next time.
                let longer = Span(self.acks.delay.unwrap_or(DELAY_MIN).0 * 2).min(self.rto());
                self.acks.delay = Some(longer);
                self.send_ack(now);
            }
        }
    }
}
