//! Labels that the rows of an experiment's tables take from it.

use crate::plan::Experiment;
use std::sync::Arc;

/// The labels of an experiment's rows.
#[derive(Clone, Debug)]
pub struct RowLabels {
    /// Number of the sweep point.
    pub experiment: u64,
    /// Number of the repetition.
    pub repetition: u64,
    /// Labels of each flow, in the order of the plan.
    pub flows: Vec<FlowLabels>,
}

/// The labels of the rows of a flow's connections.
#[derive(Clone, Debug)]
pub struct FlowLabels {
    /// Name of the flow.
    pub flow: Arc<str>,
    /// Congestion control.
    pub cc: Arc<str>,
    /// Host.
    pub host: Arc<str>,
    /// Direction; `None` if the rows have no such column.
    pub direction: Option<&'static str>,
}

/// Returns optional columns of `flows` and `samples` for which no flow of an experiment has values.
pub fn unused_columns(experiment: &Experiment) -> Vec<&'static str> {
    let mut unused = Vec::new();
    if !experiment.has_up_flows() {
        unused.push("direction");
    }
    if !experiment.has_apps() {
        unused.extend(["item", "bitrate_bps", "stall_us"]);
    }
    if !experiment.has_programs() {
        unused.extend(["lost_packets", "delay_min_us", "delay_mean_us", "delay_p95_us", "delay_us"]);
    }
    unused
}

impl RowLabels {
    /// Returns the labels of an experiment.
    pub fn of(experiment: &Experiment) -> RowLabels {
        let has_up = experiment.has_up_flows();
        let flows = experiment.flows.iter().map(|flow| FlowLabels {
            flow: flow.name.as_str().into(),
            cc: flow.cc.as_str().into(),
            host: flow.host.as_str().into(),
            direction: has_up.then_some(flow.direction()),
        });
        RowLabels {
            experiment: experiment.experiment.into(),
            repetition: experiment.repetition.into(),
            flows: flows.collect(),
        }
    }
}
