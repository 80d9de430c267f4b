//! Determines which connection opens next, and which flows are over.
//!
//! Each copy of a flow has a stream of random numbers, selected by its position among all copies of the experiment, so
//! that it draws the same gaps and sizes on every engine.

use crate::app::{Application, Delivery, Wake};
use crate::series::{Series, until};
use crate::streams::Stream;
use std::collections::BTreeMap;
use thalweg_plan::plan::{Experiment, Flow, Load};
use thalweg_units::{Bytes, Time};

/// The series of the flows that one host sends, or of all flows.
#[derive(Debug)]
pub struct Agenda {
    flows: Vec<Flow>,
    /// All series of the experiment, so that indices are the same on every host; only those selected by `is_ours` are
    /// used.
    series: Vec<Series>,
    /// For each flow, whether this agenda opens its connections.
    is_ours: Vec<bool>,
    /// For each flow, the number of its series that are not over.
    unfinished: Vec<u64>,
    /// The number of flows with at least one such series.
    unfinished_flows: usize,
    /// Flows that are over and that `next_over` has not returned yet.
    over: Vec<usize>,
    /// Applications that were woken at least once, by the index of their series.
    apps: BTreeMap<usize, RunningApp>,
}

#[derive(Debug)]
struct RunningApp {
    application: Application,
    /// The engine's ids of the application's connections.
    connections: Vec<usize>,
}

/// A connection to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Number of the connection within the copy.
    pub number: u64,
    /// Size of the first transfer; `None` if unlimited.
    pub size: Option<Bytes>,
    /// Seed of the connection's random numbers.
    pub seed: u64,
    /// Time at which the series opens the next connection, if that does not depend on the end of this one.
    pub next: Option<Time>,
}

impl Agenda {
    /// Creates an agenda before the first connection is opened. `streams` are those of the experiment's series;
    /// `is_ours` selects flows by their index.
    pub fn new(experiment: &Experiment, streams: Vec<Stream>, is_ours: impl Fn(usize) -> bool) -> Agenda {
        Agenda {
            flows: experiment.flows.clone(),
            series: Series::all(experiment, streams),
            is_ours: (0..experiment.flows.len()).map(is_ours).collect(),
            unfinished: experiment.flows.iter().map(|flow| flow.count.into()).collect(),
            unfinished_flows: experiment.flows.iter().filter(|flow| u64::from(flow.count) > 0).count(),
            over: Vec::new(),
            apps: BTreeMap::new(),
        }
    }

    /// Whether all flows of the experiment are over; false if the experiment has no flows. Valid only for an agenda of
    /// all flows.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.unfinished_flows == 0 && !self.unfinished.is_empty()
    }

    /// Returns the time at which each series of the agenda's flows opens its first connection, and the index of the
    /// series.
    pub fn first_opens(&mut self) -> Vec<(Time, usize)> {
        let own_series = self.series.iter_mut().enumerate().filter(|(_, series)| self.is_ours[series.flow]);
        own_series.map(|(index, series)| (series.first_open(&self.flows[series.flow]), index)).collect()
    }

    /// Opens the next connection of a series, which was due at `due`; `None` if the series is closed.
    pub fn open(&mut self, index: usize, due: Time) -> Option<Opening> {
        let series = &mut self.series[index];
        if series.is_closed {
            return None;
        }
        let config = &self.flows[series.flow];
        let number = series.opened;
        let next = series.on_open(config, due);
        let size = series.next_size(&config.load);
        let seed = series.next_seed();
        Some(Opening { flow: series.flow, number, size, seed, next })
    }

    /// Returns the messages of a series' application at `now`; `None` if the series has no application, or is closed.
    pub fn wake(&mut self, index: usize, now: Time) -> Option<Wake> {
        let series = &mut self.series[index];
        let Load::App { app } = &self.flows[series.flow].load else { return None };
        if series.is_closed {
            return None;
        }
        let running = self.apps.entry(index).or_insert_with(|| {
            let application = Application::new(app, series.next_seed());
            RunningApp { application, connections: Vec::new() }
        });
        Some(running.application.wake(now))
    }

    /// Opens the next connection of a series' application, whose id in the engine is `id`. Returns its number and its
    /// seed.
    pub fn open_for_app(&mut self, index: usize, id: usize) -> (u64, u64) {
        let series = &mut self.series[index];
        let number = series.opened;
        series.on_app_open();
        if let Some(running) = self.apps.get_mut(&index) {
            running.connections.push(id);
        }
        (number, series.next_seed())
    }

    /// Returns the engine's ids of the connections that a series' application has opened, by their number.
    pub fn app_connections(&self, index: usize) -> &[usize] {
        self.apps.get(&index).map_or(&[], |running| &running.connections)
    }

    /// Reports that the oldest message in flight on a connection of a series' application was delivered or abandoned at
    /// `now`.
    pub fn end_message(&mut self, index: usize, connection: u64, now: Time) -> Delivery {
        let running = self.apps.get_mut(&index);
        running.map_or_else(Delivery::default, |running| running.application.end_message(connection, now))
    }

    /// Closes a series: its application opens no more connections.
    pub fn end_app(&mut self, index: usize) {
        self.close(index);
    }

    /// Returns the size of the next transfer of a connection of a series; `None` if unlimited.
    pub fn next_size(&mut self, index: usize) -> Option<Bytes> {
        let series = &mut self.series[index];
        series.next_size(&self.flows[series.flow].load)
    }

    /// Records the end of a connection of a series. Returns the time at which the next one opens, if it waited for this
    /// end.
    pub fn end(&mut self, index: usize, now: Time) -> Option<Time> {
        let series = &mut self.series[index];
        let next = series.on_end(&self.flows[series.flow], now);
        if series.is_over() {
            self.series_over(index);
        }
        next
    }

    /// Stops a flow: it opens no more connections.
    pub fn stop(&mut self, flow: usize) {
        for index in 0..self.series.len() {
            if self.series[index].flow == flow {
                self.close(index);
            }
        }
    }

    /// Records that a flow of any host is over. Flows that repeat until then open no more connections.
    pub fn flow_over(&mut self, name: &str) {
        for index in 0..self.series.len() {
            let flow = self.series[index].flow;
            if self.is_ours[flow] && until(&self.flows[flow]) == Some(name) {
                self.close(index);
            }
        }
    }

    /// Returns a flow that is over. Each flow is returned once.
    pub fn next_over(&mut self) -> Option<usize> {
        self.over.pop()
    }

    /// Returns the flow and the copy of a series.
    pub fn copy_of(&self, index: usize) -> (usize, u64) {
        (self.series[index].flow, self.series[index].copy)
    }

    /// Returns a flow's configuration.
    pub fn flow(&self, flow: usize) -> &Flow {
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
        self.unfinished_flows -= 1;
        self.over.push(flow);
        let name = self.flows[flow].name.clone();
        self.flow_over(&name);
    }
}
