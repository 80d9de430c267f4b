//! Series of connections: when each copy of a flow opens its next connection, and whether it is over.

use crate::streams::{self, Stream};
use rand_core::Rng;
use thalweg_plan::plan::{Experiment, Flow, Load, Repeat};
use thalweg_units::{Bytes, Span, Time};

/// One copy of a flow.
#[derive(Clone, Debug)]
pub struct Series {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Number of the copy, from 0.
    pub copy: u64,
    /// Number of connections opened so far.
    pub opened: u64,
    /// Number of open connections.
    pub active: u64,
    /// Whether the series opens no more connections.
    pub is_closed: bool,
    start_jitter: Span,
    stream: Stream,
}

impl Series {
    /// Returns every copy of every flow, in the order of the plan, each with the stream at its position.
    pub fn all(experiment: &Experiment, streams: Vec<Stream>) -> Vec<Series> {
        let flows = experiment.flows.iter().enumerate();
        let copies = flows.flat_map(|(flow, config)| (0..u64::from(config.count)).map(move |copy| (flow, copy)));
        copies.zip(streams).map(|((flow, copy), stream)| Series::new(experiment, flow, copy, stream)).collect()
    }

    fn new(experiment: &Experiment, flow: usize, copy: u64, stream: Stream) -> Series {
        let start_jitter = experiment.start_jitter_ns;
        Series { flow, copy, opened: 0, active: 0, is_closed: false, start_jitter, stream }
    }

    /// Whether all connections of the series have been opened and closed.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.active == 0
    }

    /// Returns the time at which the first connection opens.
    pub fn first_open(&mut self, config: &Flow) -> Time {
        let start = self.jittered(config.start_ns);
        match config.repeat {
            Repeat::Poisson { mean_gap_ns, .. } => start + streams::exponential(mean_gap_ns, &mut self.stream),
            Repeat::Once | Repeat::Gap { .. } => start,
        }
    }

    /// Records that a connection was opened. Returns the time at which the next one opens, if that does not depend on
    /// this one's end. Closes the series after the last connection.
    pub fn on_open(&mut self, config: &Flow, now: Time) -> Option<Time> {
        self.opened += 1;
        self.active += 1;
        let (Repeat::Gap { count, .. } | Repeat::Poisson { count, .. }) = config.repeat else {
            self.is_closed = true;
            return None;
        };
        if count.is_some_and(|count| self.opened >= u64::from(count)) {
            self.is_closed = true;
            return None;
        }
        let Repeat::Poisson { mean_gap_ns, .. } = config.repeat else { return None };
        Some(now + streams::exponential(mean_gap_ns, &mut self.stream))
    }

    /// Records that an application opened a connection. The application decides whether others follow.
    pub fn on_app_open(&mut self) {
        self.opened += 1;
        self.active += 1;
    }

    /// Records the end of a connection. Returns the time at which the next one opens, if it waited for this end.
    pub fn on_end(&mut self, config: &Flow, now: Time) -> Option<Time> {
        self.active -= 1;
        match config.repeat {
            Repeat::Gap { gap_ns, .. } if !self.is_closed => Some(self.jittered(now + gap_ns)),
            _ => None,
        }
    }

    /// Returns the size of the next transfer; `None` if unlimited, or if an application decides.
    pub fn next_size(&mut self, load: &Load) -> Option<Bytes> {
        match load {
            Load::Unlimited | Load::App { .. } => None,
            Load::Sizes { sizes_bytes } => Some(sizes_bytes[streams::index(sizes_bytes.len(), &mut self.stream)]),
            Load::Requests { size_bytes, .. } => Some(*size_bytes),
        }
    }

    /// Returns a seed for the random numbers of the next connection.
    pub fn next_seed(&mut self) -> u64 {
        self.stream.next_u64()
    }

    fn jittered(&mut self, at: Time) -> Time {
        at + streams::up_to(self.start_jitter, &mut self.stream)
    }
}

/// Returns the flow whose end stops this one from opening connections.
pub fn until(config: &Flow) -> Option<&str> {
    match &config.repeat {
        Repeat::Gap { until, .. } | Repeat::Poisson { until, .. } => until.as_deref(),
        Repeat::Once => None,
    }
}
