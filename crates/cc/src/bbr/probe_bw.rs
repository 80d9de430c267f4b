//! Is there more bandwidth?
//!
//! ProbeBW cycles through eight phases of pacing gain: one that probes by sending faster, one that drains the queue which
//! that made, six that cruise.
//!
//! ```text
//!   gain  1.25  0.75  1  1  1  1  1  1
//!   phase   0     1   2  3  4  5  6  7
//! ```
//!
//! A phase lasts one minimum round-trip time; the probe lasts longer until the pipe holds as much more as it asks for or
//! packets are lost, the drain ends sooner when the queue is gone. Flows enter at a random phase other than the drain, so
//! that those that share a bottleneck do not probe together.

use crate::fixed_point::Gain;
use rand_core::Rng;
use thalweg_units::{Span, Time};

/// Phases of a cycle.
pub(super) const PHASES: usize = 8;

/// The cycle of gains.
#[derive(Debug)]
pub(super) struct Cycle {
    gains: [Gain; PHASES],
    phase: usize,
    phase_start: Time,
}

impl Cycle {
    /// A cycle that probes with `probe`, and drains with its complement.
    pub fn new(probe: Gain) -> Cycle {
        let mut gains = [Gain::UNIT; PHASES];
        gains[0] = probe;
        gains[1] = probe.complement();
        Cycle { gains, phase: 0, phase_start: Time::ZERO }
    }

    /// The phase's gain.
    pub fn gain(&self) -> Gain {
        self.gains[self.phase]
    }

    /// The members of `struct bbr` that are kept here.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("cycle_idx", self.phase as u64);
        take("cycle_mstamp", self.phase_start.as_micros());
    }

    /// Whether the phase is the one that probes.
    pub fn is_probing(&self) -> bool {
        self.phase == 0
    }

    /// Enters at a random phase: any but the drain.
    pub fn enter(&mut self, now: Time, rng: &mut dyn Rng) {
        let below = (u64::from(rng.next_u32()) * (PHASES as u64 - 1)) >> 32;
        // The six cruising phases and the probe: 7 down to 2, and 0.
        self.phase = PHASES - 1 - below as usize;
        self.advance(now);
    }

    /// Goes on to the next phase.
    pub fn advance(&mut self, now: Time) {
        self.phase = (self.phase + 1) % PHASES;
        self.phase_start = now;
    }

    /// Whether the phase has lasted longer than the minimum round-trip time.
    pub fn is_full_length(&self, now: Time, min_rtt: Option<Span>) -> bool {
        let lasted_us = now.as_micros().saturating_sub(self.phase_start.as_micros());
        min_rtt.is_some_and(|min_rtt| lasted_us > min_rtt.as_micros())
    }
}
