//! Selects the experiments of a plan to run: `--shard` and `--due`.

use crate::arguments;
use std::collections::BTreeSet;
use std::path::Path;
use thalweg_plan::plan::Plan;
use thalweg_store::{Exit, Problem};

/// Returns the indices in the plan of the experiments to run.
pub fn chosen(options: &arguments::Run, plan: &Plan) -> Result<Vec<usize>, Problem> {
    let due = options.due.as_deref().map(|file| read(file, plan)).transpose()?;
    let is_wanted = |index: &usize| {
        let experiment = &plan.experiments[*index];
        options.shard.has(*index)
            && due.as_ref().is_none_or(|due| due.contains(&(experiment.experiment, experiment.repetition)))
    };
    Ok((0..plan.experiments.len()).filter(is_wanted).collect())
}

/// Reads the pairs of experiment and repetition in `file`, all of which must be in the plan.
fn read(file: &Path, plan: &Plan) -> Result<BTreeSet<(u32, u32)>, Problem> {
    let problem = |found: String, expected: &str| Problem {
        exit: Exit::Refused,
        code: "bad-due",
        place: format!("--due {}", file.display()),
        found,
        expected: expected.to_owned(),
        hint: "docs/reference/engine-protocol.md describes this list".to_owned(),
    };
    let bytes = std::fs::read(file).map_err(|error| problem(error.to_string(), "a readable file"))?;
    let form = "a JSON list of [experiment, repetition]";
    let due: BTreeSet<(u32, u32)> = serde_json::from_slice(&bytes).map_err(|error| problem(error.to_string(), form))?;
    let planned: BTreeSet<(u32, u32)> =
        plan.experiments.iter().map(|planned| (planned.experiment, planned.repetition)).collect();
    match due.difference(&planned).next() {
        Some((experiment, repetition)) => {
            Err(problem(format!("[{experiment}, {repetition}]"), "experiments and repetitions of the plan"))
        }
        None => Ok(due),
    }
}
