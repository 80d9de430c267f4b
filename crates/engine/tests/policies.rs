//! `policy simulate`: the simulated policies and their report.

mod common;

use common::ENGINE;
use serde_json::Value;
use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(ENGINE).args(["policy", "simulate"]).args(arguments).output().unwrap()
}

#[test]
fn a_policy_simulation_is_reported_and_reproducible() {
    let arguments = ["--seeds", "4", "--policy", "static cubic", "--policy", "bayes"];
    let first = simulate(&arguments);
    let found: Value = serde_json::from_slice(&first.stdout).unwrap();
    let names: Vec<&Value> = found["policies"].as_array().unwrap().iter().map(|each| &each["policy"]).collect();
    assert_eq!(names, ["static cubic", "bayes"]);
    let regret = |number: usize| found["policies"][number]["regret_percent"]["median"].as_f64().unwrap();
    assert!(regret(1) < regret(0), "learning helps: {found:#}");
    assert_eq!(simulate(&arguments).stdout, first.stdout, "threads decide nothing");
}

#[test]
fn the_retransmission_price_is_part_of_the_objective_and_a_negative_one_is_rejected() {
    let regret = |price: &str| {
        let output = simulate(&["--seeds", "2", "--policy", "static bbr", "--retransmit-price", price]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["policies"][0]["regret_percent"]["median"].as_f64().unwrap()
    };
    assert!(regret("5") > regret("0"), "BBR retransmits more");
    let output = simulate(&["--retransmit-price=-1"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("--retransmit-price -1; expected a number from 0 to 1000"), "{told}");
}

#[test]
fn a_policy_that_does_not_exist_is_refused() {
    let output = simulate(&["--policy", "oracle"]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("thalweg-engine policy simulate: `oracle` is not a policy; expected one of "), "{told}");
    assert!(output.stdout.is_empty());
}
