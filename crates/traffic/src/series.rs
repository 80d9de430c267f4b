//! Series of connections: which copy of a flow opens its next connection when, and when a flow is over.

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
    /// Connections opened so far.
    pub opened: u64,
    /// Connections open now.
    pub active: u64,
    /// Whether it opens no more connections.
    pub is_closed: bool,
    start_jitter: Span,
    stream: Stream,
}

impl Series {
    /// Every copy of every flow, in the order of the plan, each with the stream of its place.
    pub fn all(experiment: &Experiment, streams: Vec<Stream>) -> Vec<Series> {
        let flows = experiment.flows.iter().enumerate();
        let copies = flows.flat_map(|(flow, config)| (0..u64::from(config.count)).map(move |copy| (flow, copy)));
        copies.zip(streams).map(|((flow, copy), stream)| Series::new(experiment, flow, copy, stream)).collect()
    }

    /// The copy of this number, before its first connection.
    fn new(experiment: &Experiment, flow: usize, copy: u64, stream: Stream) -> Series {
        let start_jitter = experiment.start_jitter_ns;
        Series { flow, copy, opened: 0, active: 0, is_closed: false, start_jitter, stream }
    }

    /// Whether all of its connections have been opened and closed.
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

    /// A connection has just opened: returns the time at which the next one does, if that does not depend on this one's
    /// end. Closes the series if it was the last.
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

    /// An application opens a connection; whether others follow is up to it.
    pub fn on_app_open(&mut self) {
        self.opened += 1;
        self.active += 1;
    }

    /// A connection has ended: when the next one opens, if it waited for this.
    pub fn on_end(&mut self, config: &Flow, now: Time) -> Option<Time> {
        self.active -= 1;
        match config.repeat {
            Repeat::Gap { gap_ns, .. } if !self.is_closed => Some(self.jittered(now + gap_ns)),
            _ => None,
        }
    }

    /// Size of the next connection's transfer; none if it has no end.
    pub fn next_size(&mut self, load: &Load) -> Option<Bytes> {
        match load {
            Load::Unlimited | Load::App { .. } => None,
            Load::Sizes { sizes_bytes } => Some(sizes_bytes[streams::index(sizes_bytes.len(), &mut self.stream)]),
            Load::Requests { size_bytes, .. } => Some(*size_bytes),
        }
    }

    /// A seed for the next connection's own random numbers.
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
