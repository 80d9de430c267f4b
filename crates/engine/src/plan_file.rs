//! Reads and validates a plan.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use thalweg_plan::plan::{Capacity, Experiment, FORMAT, Plan, SweepValue};
use thalweg_store::{Exit, Problem, RunFile};
use thalweg_trace::{FlowRow, Row};

/// Reads the plan in `path` (`-`: standard input), or the plan of the run.json in `path`.
pub fn read(path: &Path) -> Result<Plan, Problem> {
    let is_stdin = path == Path::new("-");
    let source = if is_stdin { "plan on standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let outcome = if is_stdin {
        std::io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    outcome.map_err(|error| Problem {
        exit: Exit::Refused,
        code: "no-plan",
        place: source.clone(),
        found: error.to_string(),
        expected: "a readable file".to_owned(),
        hint: "thalweg run FILE creates a plan from a scenario and runs it".to_owned(),
    })?;
    let plan =
        if is_run_file(&bytes) { parse::<RunFile>(&bytes, &source)?.plan } else { parse::<Plan>(&bytes, &source)? };
    check(&plan, &source)?;
    Ok(plan)
}

fn is_run_file(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        plan: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Shape>(bytes).is_ok_and(|shape| shape.plan.is_some())
}

fn parse<T: for<'de> Deserialize<'de>>(bytes: &[u8], source: &str) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = error.path().to_string();
        (if key == "." { String::new() } else { key }, error.into_inner().to_string())
    });
    let parsed =
        parsed.and_then(|value| reader.end().map(|()| value).map_err(|error| (String::new(), error.to_string())));
    parsed.map_err(|(key, message)| {
        let (found, expected) = match message.split_once(", expected ") {
            Some((found, expected)) => (found.to_owned(), expected.to_owned()),
            None => (message, "a plan".to_owned()),
        };
        bad(source, &key, found, expected)
    })
}

fn bad(source: &str, key: &str, found: impl Into<String>, expected: impl Into<String>) -> Problem {
    Problem {
        exit: Exit::Refused,
        code: "bad-plan",
        place: if key.is_empty() { source.to_owned() } else { format!("{source}: {key}") },
        found: found.into(),
        expected: expected.into(),
        hint: "thalweg-engine schema plan prints the schema of a plan; thalweg run FILE creates one from a scenario"
            .to_owned(),
    }
}

fn check(plan: &Plan, source: &str) -> Result<(), Problem> {
    if plan.format != FORMAT {
        return Err(bad(source, "format", plan.format.to_string(), FORMAT.to_string()));
    }
    let mut numbers = BTreeMap::new();
    for (index, experiment) in plan.experiments.iter().enumerate() {
        let key = format!("experiments[{index}]");
        check_traces(experiment, plan, &key, source)?;
        check_sweep(experiment, &plan.experiments[0], &key, source)?;
        if let Some(first) = numbers.insert((experiment.experiment, experiment.repetition), index) {
            let found = format!("another experiment {}, repetition {}", experiment.experiment, experiment.repetition);
            return Err(bad(source, &key, found, format!("numbers that experiments[{first}] does not have")));
        }
    }
    Ok(())
}

fn check_traces(experiment: &Experiment, plan: &Plan, key: &str, source: &str) -> Result<(), Problem> {
    for (link, name) in [(&experiment.forward, "forward"), (&experiment.reverse, "reverse")] {
        if let Some(profile) = link.profile.as_ref().filter(|profile| !plan.profiles.contains_key(*profile)) {
            let profiles: Vec<&str> = plan.profiles.keys().map(String::as_str).collect();
            let expected = format!(
                "a name in profiles ({})",
                if profiles.is_empty() { "none".to_owned() } else { profiles.join(", ") }
            );
            return Err(bad(source, &format!("{key}.{name}.profile"), format!("`{profile}`"), expected));
        }
        let Capacity::Trace { trace } = &link.capacity else { continue };
        if !plan.traces.contains_key(trace) {
            let traces: Vec<&str> = plan.traces.keys().map(String::as_str).collect();
            let expected =
                format!("a name in traces ({})", if traces.is_empty() { "none".to_owned() } else { traces.join(", ") });
            return Err(bad(source, &format!("{key}.{name}.capacity.trace"), format!("`{trace}`"), expected));
        }
    }
    Ok(())
}

/// Sweep keys become columns: every file must have the same ones with the same types, and they must not collide with
/// the other columns of flows.
fn check_sweep(experiment: &Experiment, first: &Experiment, key: &str, source: &str) -> Result<(), Problem> {
    fn kinds(experiment: &Experiment) -> Vec<(&str, &str)> {
        let kind = |value: &SweepValue| match value {
            SweepValue::Bool(_) => "true or false",
            SweepValue::Number(_) => "a number",
            SweepValue::Text(_) => "a text",
        };
        experiment.sweep.iter().map(|(key, value)| (key.as_str(), kind(value))).collect()
    }
    fn list(kinds: &[(&str, &str)]) -> String {
        let parts: Vec<String> = kinds.iter().map(|(key, kind)| format!("{key} ({kind})")).collect();
        if parts.is_empty() { "no keys".to_owned() } else { parts.join(", ") }
    }
    let (found, expected) = (kinds(experiment), kinds(first));
    let key = format!("{key}.sweep");
    if found != expected {
        return Err(bad(source, &key, list(&found), format!("{}, as in experiments[0]", list(&expected))));
    }
    match found.iter().find(|(key, _)| FlowRow::TABLE.columns.iter().any(|column| column.name == *key)) {
        Some((name, _)) => Err(bad(source, &key, format!("`{name}`"), "a key that is not a column of flows")),
        None => Ok(()),
    }
}
