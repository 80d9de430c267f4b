//! Ids depend on the inputs of a result, and not on unused traces.

use crate::common::{experiment, link};
use std::collections::BTreeMap;
use thalweg_plan::plan::Capacity;
use thalweg_store::experiment_id;

#[test]
fn the_id_of_an_experiment_stays_the_same_from_version_to_version() {
    let id = experiment_id("sim", "1", &experiment(0), &BTreeMap::new());
    assert_eq!(
        id.as_str(),
        "1f1558fa878471a3",
        "if the plan's form has changed, finished runs will be run again: say so in the changelog"
    );
}

#[test]
fn engine_version_seed_and_used_traces_change_the_id() {
    let traces = BTreeMap::from([("lte".to_owned(), vec![1, 2, 3]), ("unused".to_owned(), vec![9])]);
    let mut traced = experiment(0);
    traced.forward = link(Capacity::Trace { trace: "lte".to_owned() });
    let id = experiment_id("sim", "1", &traced, &traces);
    assert_eq!(id.as_str().len(), 16);
    assert_ne!(id, experiment_id("kernel", "1", &traced, &traces));
    assert_ne!(id, experiment_id("sim", "2", &traced, &traces));
    let mut other_seed = traced.clone();
    other_seed.seed += 1;
    assert_ne!(id, experiment_id("sim", "1", &other_seed, &traces));
    let mut other_trace = traces.clone();
    other_trace.insert("lte".to_owned(), vec![1, 2, 4]);
    assert_ne!(id, experiment_id("sim", "1", &traced, &other_trace));
    let mut other_unused = traces.clone();
    other_unused.remove("unused");
    assert_eq!(id, experiment_id("sim", "1", &traced, &other_unused));
}
