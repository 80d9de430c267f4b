//! `policy simulate`: the simulated policies and their report.

use crate::common::ENGINE;
use serde_json::Value;
use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    Command::new(ENGINE).args(["policy", "simulate"]).args(arguments).output().unwrap()
}

#[test]
fn a_policy_simulation_is_reported_and_reproducible() {
    let arguments = ["--seeds", "4", "--policy", "static cubic", "--policy", "bayes"];
    let first = simulate(&arguments);
    let result: Value = serde_json::from_slice(&first.stdout).unwrap();
    let names: Vec<&Value> = result["policies"].as_array().unwrap().iter().map(|policy| &policy["policy"]).collect();
    assert_eq!(names, ["static cubic", "bayes"]);
    let regret = |number: usize| result["policies"][number]["regret_percent"]["median"].as_f64().unwrap();
    assert!(regret(1) < regret(0), "learning helps: {result:#}");
    assert_eq!(simulate(&arguments).stdout, first.stdout, "threads decide nothing");
}

#[test]
fn the_retransmission_price_is_part_of_the_objective_and_a_negative_one_is_rejected() {
    let regret = |price: &str| {
        let output = simulate(&["--seeds", "2", "--policy", "static bbr", "--retransmit-price", price]);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        result["policies"][0]["regret_percent"]["median"].as_f64().unwrap()
    };
    assert!(regret("5") > regret("0"), "BBR retransmits more");
    let output = simulate(&["--retransmit-price=-1"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("--retransmit-price -1; expected a number from 0 to 1000"), "{stderr}");
}

#[test]
fn a_policy_that_does_not_exist_is_refused() {
    let output = simulate(&["--policy", "oracle"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("thalweg-engine policy simulate: `oracle` is not a policy; expected one of "),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
}
