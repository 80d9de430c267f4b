//! The phases of ProbeBW, and what is being acknowledged meanwhile.

use thalweg_units::{Packets, Span, Time};

/// A phase of ProbeBW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Up,
    Down,
    Cruise,
    Refill,
}

/// The cycle of phases.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub phase: Phase,
    /// When the phase Down, or Up, began.
    pub start: Time,
    /// From the start of Down to the next probe.
    pub wait: Span,
    /// Whether a probe's samples may be among what is acknowledged.
    pub is_probe_sample: bool,
    /// Whether the last probe met too much loss.
    pub was_too_high: bool,
    /// Whether the last probe ended early because of that one.
    pub was_cautious: bool,
    pub ack_phase: AckPhase,
    /// Rounds of the present probe.
    pub up_rounds: u32,
    /// Packets acknowledged since the long-term bound was last raised.
    pub up_acked: Packets,
    /// Packets to be acknowledged for it to be raised by one; none: it is not.
    pub acked_per_increment: Option<Packets>,
}

impl Cycle {
    /// Whether the phase lets more be in flight than before.
    pub fn is_raising(&self) -> bool {
        matches!(self.phase, Phase::Refill | Phase::Up)
    }

    pub fn has_waited(&self, now: Time) -> bool {
        now.as_micros() > self.start.as_micros() + self.wait.as_micros()
    }
}

/// What is being acknowledged, with regard to probes (2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Nothing of a probe.
    #[default]
    Init,
    /// What was sent before the refilling round.
    Refilling,
    /// What was sent before the probe.
    ProbeStarting,
    /// What was sent during the probe.
    ProbeFeedback,
    /// The last of it.
    ProbeStopping,
}
