//! Detects a policer that limits the rate.
//!
//! A token-bucket policer lets a burst pass and then drops the packets that exceed its rate. BBR would lose packets at
//! each probe. If two consecutive intervals of 4 to 16 rounds, each delimited by losses, both lose about one packet per
//! five delivered or more, and their rates are about equal, the mean of both rates counts as the policer's: BBR sends
//! at it for 48 rounds of ProbeBW without probing ("long-term bandwidth").
//!
//! ```text
//!            loss            loss, 4 rounds on, 1/5 lost        the same again, same rate
//!   idle ----------> interval --------------------> interval ------------------------> policed
//!     ^                 |  application-limited, or longer than 16 rounds                   |
//!     +-----------------+------------------------------------------------------------------+  48 rounds
//! ```

use crate::Conn;
use crate::fixed_point::{Bandwidth, Gain};
use thalweg_units::{Packets, Span};

/// Minimum and maximum number of rounds in an interval.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;

/// 256 times the minimum ratio of lost to delivered packets in a policed interval: 19.5 %.
const LOSS_256THS: u64 = 50;

/// Rates that differ by at most this count as equal: 4 kbit/s of payload.
const SAME_RATE_BPS: u64 = 4_000;

/// Rounds of ProbeBW for which the policer's rate is kept.
const HOLD_ROUNDS: u32 = 48;

/// Maximum interval: 2^32 microseconds.
const MAX_INTERVAL_MS: u64 = 4_294_967;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    Found,
    /// The policer's rate has been used for [`HOLD_ROUNDS`].
    HeldLongEnough,
}

#[derive(Debug, Default)]
pub(super) struct Policer {
    /// Whether to use `bw` in place of the maximum.
    is_in_use: bool,
    /// Whether an interval has begun.
    is_sampling: bool,
    /// Rounds of the interval, or of use.
    rounds: u32,
    /// Rate of the previous interval, or the policer's rate while in use; zero before the first interval has ended.
    bw: Bandwidth,
    /// The connection's state when the interval began.
    start_ms: u64,
    start_delivered: Packets,
    start_lost: Packets,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Whether packets were deemed lost.
    pub has_loss: bool,
    /// Whether the application limited the rate.
    pub is_app_limited: bool,
    /// Whether a round began.
    pub is_round_start: bool,
    /// Whether the mode is ProbeBW.
    pub is_probing_bw: bool,
}

impl Policer {
    /// Returns the policer's rate if it is in use.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        self.is_in_use.then_some(self.bw)
    }

    /// Resets the detection.
    pub fn reset(&mut self, conn: &Conn) {
        *self = Policer::default();
        self.begin_interval(conn);
    }

    /// Updates the detection with an ACK or a timeout.
    pub fn update(&mut self, conn: &Conn, evidence: Evidence) -> Finding {
        if self.is_in_use {
            return self.hold(conn, evidence);
        }
        if !self.is_sampling {
            // The first loss marks the moment at which the policer's bucket is empty.
            if !evidence.has_loss {
                return Finding::Nothing;
            }
            self.begin_interval(conn);
            self.is_sampling = true;
        }
        if evidence.is_app_limited {
            self.reset(conn);
            return Finding::Nothing;
        }
        if evidence.is_round_start {
            self.rounds += 1;
        }
        if self.rounds < MIN_ROUNDS {
            return Finding::Nothing;
        }
        if self.rounds > MAX_ROUNDS {
            self.reset(conn);
            return Finding::Nothing;
        }
        // An interval also ends with a loss, so that it covers complete fill cycles of the bucket.
        if !evidence.has_loss {
            return Finding::Nothing;
        }
        self.end_interval(conn)
    }

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("lt_is_sampling", u64::from(self.is_sampling));
        take("lt_rtt_cnt", u64::from(self.rounds));
        take("lt_use_bw", u64::from(self.is_in_use));
        take("lt_bw", self.bw.raw());
        take("lt_last_delivered", self.start_delivered.0);
        take("lt_last_stamp", self.start_ms);
        take("lt_last_lost", self.start_lost.0);
    }

    fn hold(&mut self, conn: &Conn, evidence: Evidence) -> Finding {
        if !evidence.is_probing_bw || !evidence.is_round_start {
            return Finding::Nothing;
        }
        self.rounds += 1;
        if self.rounds < HOLD_ROUNDS {
            return Finding::Nothing;
        }
        self.reset(conn);
        Finding::HeldLongEnough
    }

    fn begin_interval(&mut self, conn: &Conn) {
        self.start_ms = conn.delivered_at.0 / 1_000_000;
        self.start_delivered = conn.delivered;
        self.start_lost = conn.lost;
        self.rounds = 0;
    }

    fn end_interval(&mut self, conn: &Conn) -> Finding {
        let lost = conn.lost.saturating_sub(self.start_lost);
        let delivered = conn.delivered.saturating_sub(self.start_delivered);
        if delivered == Packets::ZERO || u128::from(lost.0) * 256 < u128::from(LOSS_256THS) * u128::from(delivered.0) {
            return Finding::Nothing;
        }
        let interval_ms = (conn.delivered_at.0 / 1_000_000).saturating_sub(self.start_ms);
        if interval_ms == 0 {
            return Finding::Nothing;
        }
        if interval_ms >= MAX_INTERVAL_MS {
            self.reset(conn);
            return Finding::Nothing;
        }
        let bw = Bandwidth::of(delivered, Span::from_millis(interval_ms));
        if self.bw != Bandwidth::ZERO && self.is_same(bw, conn) {
            self.bw = self.bw.midpoint(bw);
            self.is_in_use = true;
            self.rounds = 0;
            return Finding::Found;
        }
        self.bw = bw;
        self.begin_interval(conn);
        Finding::Nothing
    }

    fn is_same(&self, bw: Bandwidth, conn: &Conn) -> bool {
        let difference = bw.abs_diff(self.bw);
        difference.is_within_an_eighth_of(self.bw) || difference.pacing_rate(conn.mss, Gain::UNIT).0 <= SAME_RATE_BPS
    }
}
