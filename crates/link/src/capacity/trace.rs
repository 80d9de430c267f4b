//! The opportunities of a trace in mahimahi's format (R. Netravali et al., "Mahimahi: accurate record-and-replay for
//! HTTP", USENIX ATC 2015, section 3; the manual page of mm-link).
//!
//! Each number of the trace is a time in milliseconds at which 1500 bytes can be sent; if a number occurs twice, 3000
//! bytes can be sent. The last number is also the trace's period: after it, the trace repeats. An opportunity serves
//! the queued packets in order: several small ones can share it, and a packet that does not fit into the remaining
//! bytes continues at the next one. Unused bytes are lost: a packet that arrives at the instant of an opportunity
//! cannot use it.
//!
//! Deviations from mm-link:
//! - mm-link counts 1504 bytes per opportunity, of which 4 are the header of its TUN device. Here an opportunity is
//!   1500 bytes of IP packets.
//! - mm-link rejects packets larger than one opportunity. Here they use as many as they need.
//! - A packet that waits for its opportunity counts against the buffer in mm-link. Here it does not, as on a link with
//!   a rate.

use crate::error::LinkError;
use thalweg_units::{Bytes, MTU, Time};

const NANOS_PER_MS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Trace {
    opportunities_ns: Box<[u64]>,
    period_ns: u64,
    /// Number, counted from 0 over all periods, of the next opportunity that no packet has used.
    next: u64,
    /// Remaining bytes of the previous opportunity.
    left_bytes: u64,
}

impl Trace {
    pub fn new(name: &str, trace_ms: Option<&[u64]>) -> Result<Trace, LinkError> {
        let place = |line: usize| format!("traces.{name}, line {}", line + 1);
        let Some(trace_ms) = trace_ms else {
            let hint = "add a trace of this name to the plan's `traces`";
            return Err(LinkError::new("trace-missing", "capacity.trace", name, "the name of a trace", hint));
        };
        let hint = "sort it with: sort -n FILE";
        let mut opportunities_ns: Vec<u64> = Vec::with_capacity(trace_ms.len());
        for (line, &ms) in trace_ms.iter().enumerate() {
            if line > 0 && ms < trace_ms[line - 1] {
                let found = format!("{ms} after {}", trace_ms[line - 1]);
                return Err(LinkError::new("trace-not-sorted", place(line), found, "times in ascending order", hint));
            }
            opportunities_ns.push(ms.checked_mul(NANOS_PER_MS).ok_or_else(|| {
                let hint = "the unit is milliseconds since the trace's start";
                LinkError::new("trace-too-long", place(line), ms, "at most 18446744073709 ms (584 years)", hint)
            })?);
        }
        match opportunities_ns.last() {
            None => {
                let hint = "write one line per packet that may leave: its time in milliseconds";
                let place = format!("traces.{name}");
                Err(LinkError::new("trace-empty", place, "no lines", "at least one", hint))
            }
            Some(0) => {
                let hint = "the last number is the length of the trace, which must be above 0";
                let place = place(trace_ms.len() - 1);
                Err(LinkError::new("trace-without-length", place, "0 as the last number", "more than 0 ms", hint))
            }
            Some(&period_ns) => {
                Ok(Trace { opportunities_ns: opportunities_ns.into(), period_ns, next: 0, left_bytes: 0 })
            }
        }
    }

    pub fn send(&mut self, start: Time, is_back_to_back: bool, size: Bytes) -> Option<Time> {
        if !is_back_to_back {
            self.left_bytes = 0;
            self.next = self.count_until(start);
        }
        let shared = size.0.min(self.left_bytes);
        self.left_bytes -= shared;
        let wanted = size.0 - shared;
        if wanted == 0 {
            return Some(start);
        }
        self.next = self.next.saturating_add(wanted.div_ceil(MTU.0));
        self.left_bytes = (MTU.0 - wanted % MTU.0) % MTU.0;
        self.time_of(self.next - 1)
    }

    /// Returns the time of opportunity number `number`; `None` if it exceeds the range of [`Time`].
    fn time_of(&self, number: u64) -> Option<Time> {
        let per_period = self.opportunities_ns.len() as u64;
        let begin_ns = (number / per_period).checked_mul(self.period_ns)?;
        begin_ns.checked_add(self.opportunities_ns[(number % per_period) as usize]).map(Time)
    }

    /// Returns the number of opportunities from 0 to `now`, both included.
    fn count_until(&self, now: Time) -> u64 {
        let within_ns = now.0 % self.period_ns;
        let within = self.opportunities_ns.partition_point(|&at_ns| at_ns <= within_ns) as u64;
        (now.0 / self.period_ns).saturating_mul(self.opportunities_ns.len() as u64).saturating_add(within)
    }

    pub fn bytes_until(&self, now: Time) -> Bytes {
        Bytes(self.count_until(now).saturating_mul(MTU.0))
    }
}
