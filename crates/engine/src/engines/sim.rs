//! The simulator. It has no requirements on the machine, and the same experiment always produces the same tables.

use crate::engine::{Controller, Engine, Failure, Job, Outcome, Performance, Records};
use std::collections::BTreeMap;
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
                params: entry.params.iter().map(|param| (param.name.to_owned(), describe(param))).collect(),
            })
            .collect()
    }

    fn honours(&self) -> &'static [&'static str] {
        thalweg_sim::HONOURS
    }

    fn records(&self) -> Records {
        Records::Rows
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
            Err(error) => Err(thalweg_lab::Error::new("invalid-experiment", error.to_string(), "").into()),
        }
    }
}

pub(super) fn describe(param: &thalweg_cc::Param) -> String {
    let about = param.about.trim_end_matches('.');
    format!("{about}: {} to {}. Default: {}.", param.min, param.max, param.default)
}
