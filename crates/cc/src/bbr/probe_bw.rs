//! ProbeBW: the cycle that probes for more bandwidth.
//!
//! ProbeBW cycles through phases of pacing gain: one that probes by sending faster, one that drains the resulting
//! queue, and then cruising phases. Linux cruises for six phases:
//!
//! ```text
//!   gain  1.25  0.75  1  1  1  1  1  1
//!   phase   0     1   2  3  4  5  6  7
//! ```
//!
//! A phase lasts one minimum round-trip time. The probe then continues until its gain times the BDP is in flight or
//! packets are lost; the drain ends early when the queue is empty. Flows enter at a random phase other than the drain,
//! so that flows that share a bottleneck do not probe simultaneously.
//!
//! With the clock [`Clock::Time`] a single cruising phase lasts until the next probe is due.

use crate::fixed_point::Gain;
use rand_core::Rng;
use thalweg_units::{Span, Time};

/// Window of Linux's bandwidth filter in rounds: a cycle of 8 phases, and 2 more.
pub(super) const BANDWIDTH_ROUNDS: u64 = 10;

/// The probing phase, the draining phase, and the first cruising phase.
const PROBE: u64 = 0;
const DRAIN: u64 = 1;
const CRUISE: u64 = 2;

/// How the interval between probes is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// The number of cruising phases, each of one minimum round-trip time.
    RoundTrips(u64),
    /// The time between probes.
    Time(Span),
}

/// Gains and timing of ProbeBW.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    pub probe: Gain,
    pub drain: Gain,
    pub cruise: Gain,
    pub clock: Clock,
    /// Share by which the number of cruising phases, or the time between probes, varies at random in either direction.
    pub jitter: Gain,
}

impl Probing {
    /// Returns `value` with jitter: uniform from `value` less its share to `value` plus its share.
    fn jittered(&self, value: u64, rng: &mut dyn Rng) -> u64 {
        if self.jitter == Gain::ZERO {
            return value;
        }
        let spread = self.spread(value);
        value - spread + below(2 * spread + 1, rng)
    }

    fn spread(&self, value: u64) -> u64 {
        (value * self.jitter.raw() + 128) >> 8
    }
}

/// Returns a random number below `limit`, which is at most 2^32.
fn below(limit: u64, rng: &mut dyn Rng) -> u64 {
    (u64::from(rng.next_u32()) * limit) >> 32
}

#[derive(Debug)]
pub(super) struct Cycle {
    probing: Probing,
    phase: u64,
    phase_start: Time,
    /// Number of phases in this cycle.
    phases: u64,
    /// Whether the draining gain is 2 minus the probing gain, and changes with it.
    does_drain_follow: bool,
    /// With [`Clock::Time`], the time of the next probe, in whole microseconds as in Linux's clock.
    next_probe_us: u64,
}

impl Cycle {
    /// Creates a cycle that has not begun.
    pub fn new(probing: Probing) -> Cycle {
        let phases = phases(probing.clock);
        let does_drain_follow = probing.drain == probing.probe.complement();
        Cycle { probing, phase: PROBE, phase_start: Time::ZERO, phases, does_drain_follow, next_probe_us: 0 }
    }

    /// Returns the gain of the phase.
    pub fn gain(&self) -> Gain {
        match self.phase {
            PROBE => self.probing.probe,
            DRAIN => self.probing.drain,
            _ => self.probing.cruise,
        }
    }

    /// Sets the gain of the probing phase. The drain's gain follows it if it was 2 minus the probing gain.
    pub fn set_probe_gain(&mut self, gain: Gain) {
        if self.does_drain_follow {
            self.probing.drain = gain.complement();
        }
        self.probing.probe = gain;
    }

    /// Passes the members of `struct bbr` that correspond to this state to `take`.
    pub fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("cycle_idx", self.phase);
        take("cycle_mstamp", self.phase_start.as_micros());
    }

    /// Whether the phase is the probing phase.
    pub fn is_probing(&self) -> bool {
        self.phase == PROBE
    }

    /// Whether the phase is a cruising phase, and `gain` is the cruising gain.
    pub fn is_cruising_at(&self, gain: Gain) -> bool {
        self.phase >= CRUISE && gain == self.probing.cruise
    }

    /// Starts the cycle at a random phase other than the draining one. With [`Clock::Time`] it starts in the cruising
    /// phase, and the next probe is due after a random part of the interval.
    pub fn enter(&mut self, now: Time, rng: &mut dyn Rng) {
        self.phases = phases(self.probing.clock);
        if let Clock::Time(interval) = self.probing.clock {
            self.phase = CRUISE;
            self.phase_start = now;
            self.next_probe_us = now.as_micros() + below(interval.as_micros(), rng);
            return;
        }
        // The next phase is then a cruising phase (2 and up) or the probe (0).
        self.phase = self.phases - 1 - below(self.phases - 1, rng);
        self.advance(now, rng);
    }

    /// Begins the next phase.
    pub fn advance(&mut self, now: Time, rng: &mut dyn Rng) {
        self.phase = if self.phase + 1 < self.phases { self.phase + 1 } else { PROBE };
        self.phase_start = now;
        if self.phase == PROBE {
            match self.probing.clock {
                Clock::RoundTrips(cruising) => self.phases = CRUISE + self.probing.jittered(cruising, rng),
                Clock::Time(interval) => {
                    self.next_probe_us = now.as_micros() + self.probing.jittered(interval.as_micros(), rng);
                }
            }
        }
    }

    /// Whether the phase has lasted longer than the minimum round-trip time. While cruising with [`Clock::Time`]:
    /// whether the next probe is due.
    pub fn is_full_length(&self, now: Time, min_rtt: Option<Span>) -> bool {
        if self.phase >= CRUISE && matches!(self.probing.clock, Clock::Time(_)) {
            return now.as_micros() >= self.next_probe_us;
        }
        let lasted_us = now.as_micros().saturating_sub(self.phase_start.as_micros());
        min_rtt.is_some_and(|min_rtt| lasted_us > min_rtt.as_micros())
    }
}

fn phases(clock: Clock) -> u64 {
    match clock {
        Clock::RoundTrips(cruising) => CRUISE + cruising,
        Clock::Time(_) => CRUISE + 1,
    }
}

/// The clock of the bandwidth's maximum filter. In Linux it ticks once a round. If probes are further apart it ticks
/// less often, so that the window includes a probe.
#[derive(Debug)]
pub(super) struct BandwidthClock {
    /// Ticks so far.
    pub ticks: u64,
    /// Minimum number of rounds that the filter window covers.
    length: u64,
    /// Progress towards the next tick, in units of 1 / `length` tick; a round adds [`BANDWIDTH_ROUNDS`].
    progress: u64,
    /// Minimum time between two ticks, and the earliest time of the next one.
    min_tick_us: u64,
    next_tick_us: u64,
}

impl BandwidthClock {
    /// Creates the clock for a cycle with these settings.
    pub fn new(probing: &Probing) -> BandwidthClock {
        let (length, min_tick_us) = match probing.clock {
            Clock::RoundTrips(cruising) => (CRUISE + cruising + probing.spread(cruising) + 2, 0),
            Clock::Time(interval) => (0, (interval.as_micros() + probing.spread(interval.as_micros())) / 8),
        };
        BandwidthClock { ticks: 0, length: length.max(BANDWIDTH_ROUNDS), progress: 0, min_tick_us, next_tick_us: 0 }
    }

    /// Handles the start of a round.
    pub fn on_round(&mut self, now: Time) {
        self.progress += BANDWIDTH_ROUNDS;
        if self.progress >= self.length && now.as_micros() >= self.next_tick_us {
            self.progress %= self.length;
            self.next_tick_us = now.as_micros() + self.min_tick_us;
            self.ticks += 1;
        }
    }
}
