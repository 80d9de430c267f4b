//! A rate that changes in steps.
//!
//! Bits are sent as a fluid: a packet of `n` bits that begins at `t0` ends at the first instant `t1` at which the rate,
//! integrated from `t0` to `t1`, has reached `n`. If the rate changes during a packet, the remaining bits are sent at
//! the new rate; at rate 0 they wait for the next step, or forever after the last step unless the steps repeat.
//!
//! Ends are rounded up to a nanosecond. The bits of that last nanosecond beyond the packet's end are credited to the
//! next packet if it was waiting, so that ends of back-to-back packets are exact for any number of packets.
//!
//! Work is counted in units of 1e-9 bit, so that one nanosecond at `r` bit/s is exactly `r` units.

use crate::error::LinkError;
use thalweg_plan::plan::Step;
use thalweg_units::{Bytes, Span, Time};

/// Units of work in a byte.
const PER_BYTE: u128 = 8 * 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Steps {
    phases: Box<[Phase]>,
    /// Period after which the phases repeat; `None` if the last one continues forever.
    period: Option<Span>,
    /// Start of the repetition in which the latest packet ended.
    cycle: Time,
    /// Index of the phase in which the latest packet ended.
    current: usize,
    /// Work done within the nanosecond in which the latest packet ended, beyond that packet.
    credit: u128,
}

#[derive(Clone, Copy, Debug)]
struct Phase {
    at: Time,
    rate_bps: u64,
    /// Work that the link could have done before the phase.
    done_before: u128,
}

impl Phase {
    fn work_until(&self, end: Time) -> u128 {
        u128::from(self.rate_bps) * u128::from(end.since(self.at).0)
    }
}

impl Steps {
    pub fn new(steps: &[Step], period: Option<Span>) -> Result<Steps, LinkError> {
        let hint = "write the steps in order of time, the first as {\"at_ns\": 0, \"rate_bps\": ...}";
        let first = steps
            .first()
            .ok_or_else(|| LinkError::new("steps-empty", "capacity.steps", "no steps", "at least one step", hint))?;
        if first.at_ns != Time::ZERO {
            let found = format!("{} ns", first.at_ns.0);
            return Err(LinkError::new("first-step-not-at-0", "capacity.steps[0].at_ns", found, "0", hint));
        }
        let mut phases: Vec<Phase> = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let mut done_before = 0;
            if let Some(last) = phases.last() {
                if step.at_ns <= last.at {
                    let place = format!("capacity.steps[{index}].at_ns");
                    let found = format!("{} ns after a step at {} ns", step.at_ns.0, last.at.0);
                    return Err(LinkError::new("steps-not-increasing", place, found, "a later time", hint));
                }
                done_before = last.done_before + last.work_until(step.at_ns);
            }
            phases.push(Phase { at: step.at_ns, rate_bps: step.rate_bps.0, done_before });
        }
        Ok(Steps { phases: phases.into(), period, cycle: Time::ZERO, current: 0, credit: 0 })
    }

    pub fn send(&mut self, start: Time, is_back_to_back: bool, size: Bytes) -> Option<Time> {
        if !is_back_to_back {
            self.credit = 0;
        }
        let size = u128::from(size.0) * PER_BYTE;
        let credited = size.min(self.credit);
        self.credit -= credited;
        let mut remaining = size - credited;
        if remaining == 0 {
            return Some(start);
        }
        let mut begin = start;
        if self.phases.iter().all(|phase| phase.rate_bps == 0) {
            return None;
        }
        loop {
            let (phase, end) = self.phase_at(begin);
            let rate = u128::from(phase.rate_bps);
            if rate > 0 {
                let nanos = div_ceil(remaining, rate);
                let finish = u128::from(begin.0) + nanos;
                if finish <= u128::from(end.0) {
                    self.credit = nanos * rate - remaining;
                    return Some(Time(finish as u64));
                }
            }
            if end == Time::MAX {
                return None;
            }
            remaining -= rate * u128::from(end.since(begin).0);
            begin = end;
        }
    }

    /// Returns the phase at an instant, and its end. Instants must not decrease.
    fn phase_at(&mut self, now: Time) -> (Phase, Time) {
        loop {
            let next = self.phases.get(self.current + 1).map(|next| next.at);
            let end = match (next, self.period) {
                (Some(next), _) => self.cycle + next.since(Time::ZERO),
                (None, Some(period)) => self.cycle + period,
                (None, None) => Time::MAX,
            };
            if now < end || end == Time::MAX {
                return (self.phases[self.current], end);
            }
            self.current += 1;
            if self.current == self.phases.len() {
                self.current = 0;
                self.cycle = end;
            }
        }
    }

    pub fn bytes_until(&self, now: Time) -> Bytes {
        let (cycles, within) = match self.period {
            Some(period) => (now.0 / period.0, Time(now.0 % period.0)),
            None => (0, now),
        };
        let per_cycle = self.period.map_or(0, |period| self.work_within(Time::ZERO + period));
        let work = per_cycle.saturating_mul(u128::from(cycles)).saturating_add(self.work_within(within));
        Bytes(u64::try_from(work / PER_BYTE).unwrap_or(u64::MAX))
    }

    /// Returns the work that the link could do from the start of a repetition to an instant within it.
    fn work_within(&self, now: Time) -> u128 {
        let after = self.phases.partition_point(|phase| phase.at <= now);
        let phase = self.phases[after - 1];
        phase.done_before.saturating_add(phase.work_until(now))
    }
}

/// Divides and rounds up. Most values fit into 64 bits, where division is faster.
fn div_ceil(work: u128, rate: u128) -> u128 {
    match (u64::try_from(work), u64::try_from(rate)) {
        (Ok(work), Ok(rate)) => u128::from(work.div_ceil(rate)),
        _ => work.div_ceil(rate),
    }
}
