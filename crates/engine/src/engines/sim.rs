//! The simulator. It has no requirements on the machine, and the same experiment produces the same tables.

use crate::engine::{Controller, Engine, Failure, Job, Outcome, Performance, Records};
use std::collections::BTreeMap;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;

/// The engine `sim`.
pub struct SimEngine;

impl Engine for SimEngine {
    fn name(&self) -> &'static str {
        thalweg_sim::NAME
    }

    fn about(&self) -> &'static str {
        "Packet-level discrete-event simulator: deterministic, runs on any machine."
    }

    fn result_version(&self) -> String {
        thalweg_sim::RESULT_VERSION.to_owned()
    }

    fn why_not(&self) -> Option<String> {
        None
    }

    fn controllers(&self) -> Vec<Controller> {
        thalweg_cc::CATALOG
            .iter()
            .map(|entry| Controller {
                name: entry.name.to_owned(),
                about: entry.about.to_owned(),
                params: entry.params.iter().collect(),
            })
            .collect()
    }

    fn honours(&self) -> &'static [&'static str] {
        thalweg_sim::HONOURS
    }

    fn records(&self) -> Records {
        Records::Rows
    }

    fn check(&self, experiment: &Experiment, traces: &Traces) -> Result<(), thalweg_lab::Error> {
        thalweg_sim::check(experiment, traces).map_err(|error| invalid(&error))
    }

    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        match thalweg_sim::run(job.experiment, job.traces, sink, job.is_cancelled) {
            Ok(summary) => Ok(Outcome {
                packets: summary.packets,
                performance: Performance {
                    lasted: summary.simulated,
                    measured: BTreeMap::new(),
                    untrustworthy: Vec::new(),
                },
            }),
            Err(thalweg_sim::Error::Cancelled) => Err(Failure::Cancelled),
            Err(error) => Err(invalid(&error).into()),
        }
    }
}

fn invalid(error: &thalweg_sim::Error) -> thalweg_lab::Error {
    thalweg_lab::Error::new("invalid-experiment", error.to_string(), "")
}
