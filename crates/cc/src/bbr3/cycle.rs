//! The phases of ProbeBW, and the position of the acknowledged packets in them.

use thalweg_units::{Packets, Span, Time};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Up,
    Down,
    Cruise,
    Refill,
}

#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub phase: Phase,
    /// Start of phase Down or Up.
    pub start: Time,
    /// Maximum time from the start of Down to the next probe.
    pub wait: Span,
    /// Whether the acknowledged packets may include a probe's samples.
    pub is_probe_sample: bool,
    /// Whether the last probe caused too much loss or too many marks.
    pub was_too_high: bool,
    /// Whether the last probe ended at the long-term bound because the previous one had caused too much loss or too
    /// many marks.
    pub was_cautious: bool,
    pub ack_phase: AckPhase,
    /// The next slope of the long-term bound is 2 to this power packets per acknowledged window; at most 30.
    pub up_rounds: u32,
    /// Acknowledged packets that have not yet raised the long-term bound.
    pub up_acked: Packets,
    /// Packets to be acknowledged before the long-term bound is raised by one; `None` if it is not being raised.
    pub acked_per_increment: Option<Packets>,
}

impl Cycle {
    /// Whether the phase increases the number of packets in flight.
    pub fn is_raising(&self) -> bool {
        matches!(self.phase, Phase::Refill | Phase::Up)
    }

    pub fn has_waited(&self, now: Time) -> bool {
        now.as_micros() > self.start.as_micros() + self.wait.as_micros()
    }
}

/// Position of the acknowledged packets relative to a probe (2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Unrelated to a probe.
    #[default]
    Init,
    /// Sent before the refilling round.
    Refilling,
    /// Sent before the probe.
    ProbeStarting,
    /// Sent during the probe.
    ProbeFeedback,
    /// Sent before the probe ended. Also used after Drain, and in and after ProbeRTT.
    ProbeStopping,
}
