//! The differences between the draft and Linux.
//!
//! Both variants have these features of Linux: integer arithmetic in packets and 256ths, the shortcut while the sender
//! is application-limited, a response to rate samples with too much loss in addition to that to each
//! [`LostSegment`](crate::LostSegment), and the response to ECN (off by default).

use crate::fixed_point::Gain;

/// Settings that depend on the variant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    /// Pacing gain of Drain (5.3.2).
    pub drain_gain: Gain,
    /// Rounds after which Drain ends in any case (5.3.2).
    pub max_drain_rounds: Option<u64>,
    /// Pacing gain of phase Down (5.3.3.1).
    pub down_gain: Gain,
    /// cwnd gain of ProbeRTT (5.3.4.1), in addition to the cap in both variants.
    pub probe_rtt_cwnd_gain: Gain,
    /// Whether the detection of a full pipe accepts a higher bandwidth only at the start of a round (5.3.1.2).
    pub grows_at_round_start_only: bool,
    /// Whether cwnd is restored at the end of fast recovery, and not only after a timeout (5.6.4.4).
    pub restores_after_recovery: bool,
    /// Whether undoing a spurious recovery that ended Startup or a probe returns to Startup or Refill (5.5.11.2).
    pub undoes_state: bool,
    /// Whether phase Cruise limits the short-term bound to the long-term one.
    pub cruises_below_long_term: bool,
    /// Whether the target after a loss is at least three bursts, unless cwnd is lower (5.3.3.8, TargetInflight).
    pub targets_with_bursts: bool,
    /// Whether departures that pacing has scheduled are included in the packets in flight that end a phase (5.3.3.9).
    pub looks_ahead: bool,
}

impl Variant {
    /// Google's Linux branch.
    pub const LINUX: Variant = Variant {
        drain_gain: Gain::DRAIN,
        max_drain_rounds: None,
        down_gain: Gain::hundredths(91),
        probe_rtt_cwnd_gain: Gain::UNIT,
        grows_at_round_start_only: false,
        restores_after_recovery: false,
        undoes_state: false,
        cruises_below_long_term: true,
        targets_with_bursts: true,
        looks_ahead: true,
    };

    /// draft-ietf-ccwg-bbr-06.
    pub const DRAFT: Variant = Variant {
        drain_gain: Gain::hundredths(50),
        max_drain_rounds: Some(3),
        down_gain: Gain::hundredths(90),
        probe_rtt_cwnd_gain: Gain::hundredths(50),
        grows_at_round_start_only: true,
        restores_after_recovery: true,
        undoes_state: true,
        cruises_below_long_term: false,
        targets_with_bursts: false,
        looks_ahead: false,
    };
}
