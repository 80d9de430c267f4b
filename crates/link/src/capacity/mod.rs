//! Capacity: the times at which packets leave the queue.
//!
//! A capacity sends one packet at a time and is known for all times, so that the end of a transmission is computed
//! once, at its start: no events are needed for rate changes or for the opportunities of a trace.

mod steps;
mod trace;

use crate::error::LinkError;
use crate::profile;
use steps::Steps;
use thalweg_plan::plan;
use thalweg_units::{Bytes, Time};
use trace::Trace;

#[derive(Debug)]
pub(crate) enum Capacity {
    Unlimited,
    Steps(Steps),
    Trace(Trace),
}

impl Capacity {
    pub fn new(config: &plan::Link, traces: &plan::Traces) -> Result<Capacity, LinkError> {
        match &config.capacity {
            plan::Capacity::Unlimited => Ok(Capacity::Unlimited),
            plan::Capacity::Steps { steps } => Steps::new(steps, None).map(Capacity::Steps),
            plan::Capacity::Trace { trace: name } => {
                Trace::new(name, traces.opportunities.get(name).map(Vec::as_slice)).map(Capacity::Trace)
            }
            plan::Capacity::Profile {} => {
                let profile = profile::find(config.profile.as_deref().unwrap_or_default(), traces)?;
                let rates = profile.points.iter();
                let rates =
                    rates.filter_map(|point| Some(plan::Step { at_ns: point.at_ns, rate_bps: point.rate_bps? }));
                Steps::new(&rates.collect::<Vec<_>>(), profile.period_ns).map(Capacity::Steps)
            }
        }
    }

    /// Starts to send a packet at `start`; returns the time at which its last bit leaves, or `None` if it never does.
    ///
    /// `is_back_to_back` means that the packet waited for the previous one, which ended at `start`: the unused part of
    /// that packet's last nanosecond or opportunity is then not lost.
    pub fn send(&mut self, start: Time, is_back_to_back: bool, size: Bytes) -> Option<Time> {
        match self {
            Capacity::Unlimited => Some(start),
            Capacity::Steps(steps) => steps.send(start, is_back_to_back, size),
            Capacity::Trace(trace) => trace.send(start, is_back_to_back, size),
        }
    }

    /// Returns the number of bytes that the capacity could have carried from 0 to `now`; `None` if it is unlimited.
    pub fn bytes_until(&self, now: Time) -> Option<Bytes> {
        match self {
            Capacity::Unlimited => None,
            Capacity::Steps(steps) => Some(steps.bytes_until(now)),
            Capacity::Trace(trace) => Some(trace.bytes_until(now)),
        }
    }
}
