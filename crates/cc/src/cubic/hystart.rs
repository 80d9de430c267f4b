//! HyStart: ends slow start before losses occur.
//!
//! HyStart (Ha and Rhee, "Taming the elephants", 2011) observes each round of slow start for two signs that the pipe is
//! full:
//!
//! - **ACK train**: closely spaced ACKs have lasted for half of the smallest round-trip time. Segments sent back to
//!   back are acknowledged over a time that corresponds to the capacity of the pipe.
//! - **Delay**: the smallest round-trip time of the round's first eight samples is above the smallest so far by an
//!   eighth (at least 4 ms, at most 16 ms), which indicates that a queue builds.
//!
//! Deviations from the paper are Linux's (6.14): a round ends when the first segment sent after its start is
//! acknowledged; the delay is compared on each ACK after the eighth; the train's threshold grows by the time for which
//! segmentation offload may hold data back, and is doubled if the connection is paced. This is not HyStart++ (RFC
//! 9406).

use crate::{Conn, Window};
use thalweg_units::{Bytes, Rate, Span, Time};

/// Minimum cwnd of HyStart: with a smaller window a round has too few samples.
const LOW_WINDOW: u64 = 16;

/// Minimum number of samples in a round before the delay is evaluated.
const MIN_SAMPLES: u32 = 8;

/// Limits of the delay increase that ends slow start.
const MIN_DELAY_INCREASE: Span = Span::from_millis(4);
const MAX_DELAY_INCREASE: Span = Span::from_millis(16);

/// Maximum gap between ACKs of the same train.
const TRAIN_GAP: Span = Span::from_millis(2);

/// Four bursts of the largest size that segmentation offload builds (64 KiB less space for headers).
const OFFLOAD: Bytes = Bytes(4 * 65_215);

/// Maximum time that offload adds to the train's threshold.
const MAX_OFFLOAD_DELAY: Span = Span::from_millis(1);

/// HyStart's state in a round of slow start.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    /// Whether HyStart has ended slow start. Nothing is measured afterwards.
    is_found: bool,
    round_start: Time,
    last_ack: Time,
    /// The round ends when the stream is acknowledged beyond this byte.
    end_bytes: Bytes,
    /// Smallest round-trip time in this round.
    round_rtt: Option<Span>,
    samples: u32,
}

impl HyStart {
    /// Starts the first round.
    pub fn new(conn: &Conn) -> HyStart {
        let now = whole_micros(conn.now);
        HyStart { round_start: now, last_ack: now, end_bytes: conn.next_bytes, ..HyStart::default() }
    }

    /// Whether HyStart ended slow start.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// Passes the members of `struct bictcp` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("sample_cnt", u64::from(self.samples));
        take("found", u64::from(self.is_found));
        take("round_start", self.round_start.as_micros());
        take("end_seq", self.end_bytes.0);
        take("last_ack", self.last_ack.as_micros());
        take("curr_rtt", self.round_rtt.map_or(u64::from(u32::MAX), Span::as_micros));
    }

    /// Handles an ACK with the round-trip time `rtt`; `delay_min` is the smallest so far, including this one.
    pub fn on_ack(&mut self, conn: &Conn, rtt: Span, delay_min: Span, window: &mut Window) {
        if self.is_found || !window.is_in_slow_start() {
            return;
        }
        if conn.una_bytes > self.end_bytes {
            *self = HyStart::new(conn);
        }
        if window.cwnd.0 < LOW_WINDOW {
            return;
        }
        let is_train_long = self.is_train_long(conn, delay_min, window.pacing_rate);
        if is_train_long || self.is_delay_up(rtt, delay_min) {
            self.is_found = true;
            window.ssthresh = window.cwnd;
        }
    }

    fn is_train_long(&mut self, conn: &Conn, delay_min: Span, pacing_rate: Rate) -> bool {
        let now = whole_micros(conn.now);
        if now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = now;
        let threshold = (delay_min + offload_delay(pacing_rate)).as_micros();
        let threshold = if conn.is_paced { threshold } else { threshold / 2 };
        now.since(self.round_start).as_micros() > threshold
    }

    fn is_delay_up(&mut self, rtt: Span, delay_min: Span) -> bool {
        let round_rtt = self.round_rtt.map_or(rtt, |smallest| smallest.min(rtt));
        self.round_rtt = Some(round_rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let increase = Span::from_micros(delay_min.as_micros() / 8).clamp(MIN_DELAY_INCREASE, MAX_DELAY_INCREASE);
        round_rtt > delay_min + increase
    }
}

/// Returns the time for which offload may hold data back at the pacing rate.
fn offload_delay(pacing_rate: Rate) -> Span {
    let bytes_per_second = pacing_rate.0 / 8;
    if bytes_per_second == 0 {
        return Span::ZERO;
    }
    Span::from_micros(OFFLOAD.0 * 1_000_000 / bytes_per_second).min(MAX_OFFLOAD_DELAY)
}

/// Rounds `time` down to whole microseconds, the resolution of Linux's clock for round-trip times.
fn whole_micros(time: Time) -> Time {
    Time(time.as_micros() * 1_000)
}
