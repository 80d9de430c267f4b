//! `thalweg-engine check`: the reasons why this machine cannot run a plan, found without running it.

use crate::plan_file;
use crate::run::find_engine;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use thalweg_lab::Error;
use thalweg_plan::plan::FORMAT;
use thalweg_store::Problem;

/// Returns each reason once, with the number of the first experiment that it concerns, as JSON.
///
/// # Errors
/// If the plan cannot be read, or this machine cannot run its engine at all.
pub fn refusals(plan: &Path) -> Result<Value, Problem> {
    let plan = plan_file::read(plan)?;
    let engine = find_engine(&plan.engine)?;
    let traces = plan.named_traces();
    let mut refused: Vec<(u32, Error)> = Vec::new();
    let mut checked = BTreeSet::new();
    // Repetitions differ in their seeds only.
    for experiment in plan.experiments.iter().filter(|experiment| checked.insert(experiment.experiment)) {
        let Err(error) = engine.check(experiment, &traces) else { continue };
        if refused.iter().all(|(_, known)| *known != error) {
            refused.push((experiment.experiment, error));
        }
    }
    let refused: Vec<Value> = refused
        .into_iter()
        .map(|(experiment, Error { code, message, hint })| {
            json!({ "experiment": experiment, "code": code, "message": message, "hint": hint })
        })
        .collect();
    Ok(json!({ "format": FORMAT, "refused": refused }))
}
