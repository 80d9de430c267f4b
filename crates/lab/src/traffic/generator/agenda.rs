//! Which connection opens next, and which flows are over: what the simulator's calendar does, for the flows of one host.
//!
//! Copy k of a flow draws from the stream of its place in the whole experiment, and in the simulator's order, so that
//! it opens its connections at the same moments and with the same sizes on both.

use thalweg_plan::plan::{Experiment, Flow};
use thalweg_traffic::{Randomness, Series};
use thalweg_units::{Bytes, Time};

/// The series of this host's flows.
#[derive(Debug)]
pub(super) struct Agenda {
    flows: Vec<Flow>,
    /// All series of the experiment, so that places are the same on every host; only those of this host are used.
    series: Vec<Series>,
    /// Whether a flow is this host's.
    is_ours: Vec<bool>,
    /// For each flow, how many of its series are not over.
    unfinished: Vec<u64>,
    /// Flows that are over since the last question.
    over: Vec<usize>,
}

/// A connection to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) flow: usize,
    /// Number of the connection within the copy.
    pub(super) number: u64,
    /// What its first transfer carries; none: without end.
    pub(super) size: Option<Bytes>,
    /// When the series opens the next one, if that does not depend on this one's end.
    pub(super) next: Option<Time>,
}

impl Agenda {
    /// Nothing has been opened. `flows` are the places in the plan of the host's flows.
    pub(super) fn new(experiment: &Experiment, flows: &[usize]) -> Agenda {
        Agenda {
            flows: experiment.flows.clone(),
            series: Series::all(experiment, Randomness::new(experiment).series),
            is_ours: (0..experiment.flows.len()).map(|flow| flows.contains(&flow)).collect(),
            unfinished: experiment.flows.iter().map(|flow| flow.count.into()).collect(),
            over: Vec::new(),
        }
    }

    /// The first connection of each of the host's series: when, and the series' place.
    pub(super) fn first_opens(&mut self) -> Vec<(Time, usize)> {
        let ours = self.series.iter_mut().enumerate().filter(|(_, series)| self.is_ours[series.flow]);
        ours.map(|(index, series)| (series.first_open(&self.flows[series.flow]), index)).collect()
    }

    /// Opens the next connection of a series, which was due at a time; nothing if it opens no more.
    pub(super) fn open(&mut self, index: usize, due: Time) -> Option<Opening> {
        let series = &mut self.series[index];
        if series.is_closed {
            return None;
        }
        let config = &self.flows[series.flow];
        let number = series.opened;
        let next = series.on_open(config, due);
        let size = series.next_size(&config.load);
        // The simulator draws a seed for the connection's algorithm here; the kernel has randomness of its own.
        series.next_seed();
        Some(Opening { flow: series.flow, number, size, next })
    }

    /// What the next transfer of a connection carries.
    pub(super) fn next_size(&mut self, index: usize) -> Option<Bytes> {
        let series = &mut self.series[index];
        series.next_size(&self.flows[series.flow].load)
    }

    /// A connection of a series has ended: when the next one opens, if it waited for this.
    pub(super) fn end(&mut self, index: usize, now: Time) -> Option<Time> {
        let series = &mut self.series[index];
        let next = series.on_end(&self.flows[series.flow], now);
        if series.is_over() {
            self.series_over(index);
        }
        next
    }

    /// A flow of this host opens no more connections.
    pub(super) fn stop(&mut self, flow: usize) {
        for index in 0..self.series.len() {
            if self.series[index].flow == flow {
                self.close(index);
            }
        }
    }

    /// A flow of any host is over: those of ours that go on until then open no more connections.
    pub(super) fn flow_over(&mut self, name: &str) {
        for index in 0..self.series.len() {
            let flow = self.series[index].flow;
            if self.is_ours[flow] && thalweg_traffic::until(&self.flows[flow]) == Some(name) {
                self.close(index);
            }
        }
    }

    /// A flow of this host that is over, each once.
    pub(super) fn next_over(&mut self) -> Option<usize> {
        self.over.pop()
    }

    /// Flow and copy of a series.
    pub(super) fn copy_of(&self, index: usize) -> (usize, u64) {
        (self.series[index].flow, self.series[index].copy)
    }

    /// A flow's configuration.
    pub(super) fn flow(&self, flow: usize) -> &Flow {
        &self.flows[flow]
    }

    fn close(&mut self, index: usize) {
        let was_over = self.series[index].is_over();
        self.series[index].is_closed = true;
        if !was_over && self.series[index].is_over() {
            self.series_over(index);
        }
    }

    fn series_over(&mut self, index: usize) {
        let flow = self.series[index].flow;
        self.unfinished[flow] -= 1;
        if self.unfinished[flow] > 0 {
            return;
        }
        self.over.push(flow);
        let name = self.flows[flow].name.clone();
        self.flow_over(&name);
    }
}
