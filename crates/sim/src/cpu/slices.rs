//! The CPU slices of a host: when it is on CPU.

use thalweg_plan::plan;
use thalweg_traffic::{Stream, up_to};
use thalweg_units::{Span, Time};

/// Parts per million in 1: shares and jitter are in parts per million.
pub(super) const MILLION: u64 = 1_000_000;

/// The schedule of a CPU: a slice at the beginning of each period.
///
/// With jitter, the slice of each period is from `1 - jitter` to `1 + jitter` times as long as the nominal one,
/// uniformly distributed and derived from the number of the period, so that a length can be computed without the
/// previous ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    pub(crate) slice: Span,
    pub(crate) period: Span,
    /// Part of a period that has elapsed at time 0; set again when CPU credit is used up.
    pub(crate) phase: Span,
    jitter_ppm: u64,
    /// Seed of the lengths of slices; used only with jitter.
    seed: u64,
}

impl Slices {
    /// Creates the schedule; the experiment begins at a moment of a period drawn from `stream`.
    pub(super) fn new(cpu: &plan::Cpu, stream: &mut Stream) -> Slices {
        let phase = up_to(cpu.period_ns, stream);
        let jitter_ppm = if cpu.is_whole() { 0 } else { u64::from(cpu.slice_jitter_ppm) };
        let seed = if jitter_ppm > 0 { up_to(Span(u64::MAX), stream).0 } else { 0 };
        Slices { slice: cpu.slice_ns, period: cpu.period_ns.max(cpu.slice_ns), phase, jitter_ppm, seed }
    }

    /// Returns the elapsed part of the period that includes `at`.
    pub(super) fn elapsed(&self, at: Time) -> Span {
        Span((at.0 + self.phase.0) % self.period.0)
    }

    /// Returns the length of the slice in the period that includes `at`.
    pub(super) fn length(&self, at: Time) -> Span {
        if self.jitter_ppm == 0 {
            return self.slice;
        }
        let number = (at.0 + self.phase.0) / self.period.0;
        let drawn = mixed(self.seed ^ mixed(number)) % (2 * self.jitter_ppm + 1);
        self.slice.scale(MILLION - self.jitter_ppm + drawn, MILLION).max(Span(1))
    }

    /// Returns the earliest time from `at` on that is within a slice.
    pub(super) fn turn(&self, at: Time) -> Time {
        if self.elapsed(at) < self.length(at) { at } else { self.next_period(at) }
    }

    /// Returns the end of work that takes `cost` and begins within a slice; if it exactly uses up a slice, the start of
    /// the next one.
    pub(super) fn finish(&self, now: Time, cost: Span) -> Time {
        let elapsed = self.elapsed(now);
        if self.jitter_ppm == 0 {
            let done = elapsed + cost;
            let (slices, rest) = (done.0 / self.slice.0, done.0 % self.slice.0);
            return now + Span(slices * self.period.0 + rest).saturating_sub(elapsed);
        }
        let (mut at, mut left) = (now, cost);
        loop {
            let available = self.length(at).saturating_sub(self.elapsed(at));
            if left < available {
                return at + left;
            }
            left = left.saturating_sub(available);
            at = self.next_period(at);
        }
    }

    pub(super) fn next_period(&self, at: Time) -> Time {
        at + self.period.saturating_sub(self.elapsed(at))
    }

    pub(super) fn begin_at(&mut self, at: Time) {
        self.phase = Span((self.period.0 - at.0 % self.period.0) % self.period.0);
    }
}

/// Mixes the bits of a number (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
