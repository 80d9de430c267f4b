//! Tests that the numbers in a plan cannot make the simulator panic.
//!
//! A case changes a few values of an experiment to extremes. The test runs for about a second, or for
//! `THALWEG_FUZZ_SECONDS` (`make fuzz`); a failure reports the seed, and `THALWEG_FUZZ_SEED` sets the first one.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Nothing;

/// Integers that are likely to cause arithmetic errors.
const EXTREMES: [u64; 16] = [
    0,
    1,
    2,
    3,
    7,
    1_499,
    1_500,
    1 << 16,
    1_000_000_000,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 53,
    1 << 62,
    1 << 63,
    u64::MAX,
];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn leaves(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(keys) => keys.iter().for_each(|(key, below)| leaves(below, format!("{path}/{key}"), paths)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, below)| leaves(below, format!("{path}/{at}"), paths));
        }
        _ => paths.push(path),
    }
}

fn changed(experiment: &Value, random: &mut Xoshiro256PlusPlus) -> Value {
    let mut experiment = experiment.clone();
    let mut below = |bound: usize| (random.next_u64() % bound as u64) as usize;
    experiment["flows"][0]["load"] = [
        json!({"kind": "unlimited"}),
        json!({"kind": "sizes", "sizes_bytes": [5_000_000]}),
        json!({"kind": "requests", "size_bytes": 20_000, "think_ns": 1_000_000, "count": 5}),
    ][below(3)]
    .clone();
    experiment["flows"][0]["repeat"] = [
        json!({"kind": "once"}),
        json!({"kind": "gap", "gap_ns": 1000, "until": null, "count": 10}),
        json!({"kind": "poisson", "mean_gap_ns": 10_000_000, "until": null, "count": null}),
    ][below(3)]
    .clone();
    experiment["flows"][0]["cc"] = json!(["reno", "cubic", "bbr", "bbr3", "bbr_cpu"][below(5)]);
    experiment["duration_ns"] = [json!(null), json!(1_000_000_000_u64)][below(2)].clone();
    let mut places = Vec::new();
    leaves(&experiment, String::new(), &mut places);
    for _ in 0..=below(3) {
        let value = experiment.pointer_mut(&places[below(places.len())]).expect("a place in it");
        if value.is_u64() || value.is_null() {
            *value = json!(EXTREMES[below(EXTREMES.len())]);
        } else if value.is_f64() {
            *value = json!([0.0, 1e-300, 0.5, 0.999_999_999, 1.0][below(5)]);
        }
    }
    experiment
}

#[test]
fn fuzz_no_number_in_a_plan_makes_the_simulator_panic() {
    let base: Value = serde_json::from_str(include_str!("../data/one-cubic-flow.json")).expect("JSON");
    let end = Instant::now() + Duration::from_secs(setting("THALWEG_FUZZ_SECONDS").unwrap_or(1));
    let mut ran = 0;
    for seed in setting("THALWEG_FUZZ_SEED").unwrap_or(0).. {
        let changed = changed(&base, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let Ok(experiment) = serde_json::from_value::<Experiment>(changed.clone()) else { continue };
        let checks = Cell::new(0);
        let is_enough = || checks.replace(checks.get() + 1) >= 2;
        let run = || thalweg_sim::run(&experiment, &Traces::default(), &mut Nothing, &is_enough);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_ok(), "seed {seed} panics: {changed}");
        ran += 1;
        if Instant::now() > end {
            break;
        }
    }
    assert!(ran > 20, "only {ran} cases ran");
}
