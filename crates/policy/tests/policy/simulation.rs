//! Tests of policies on the population of paths.

use std::ops::Range;
use thalweg_policy::simulate::{Contender, OUTCOMES, POPULATION, Simulation, Spread};
use thalweg_policy::{ArmId, Objective};

/// Seeds of the worlds. With few seeds, medians vary more than policies differ.
const SEEDS: Range<u64> = 500..540;

fn simulation() -> Simulation {
    Simulation::new(POPULATION, OUTCOMES, Objective::default()).unwrap()
}

/// Returns the median over worlds of the mean regret, including held-out connections.
fn regret(simulation: &Simulation, contender: &Contender, seeds: Range<u64>) -> f64 {
    Spread::of(seeds.map(|seed| simulation.play(contender, seed).regret_with_holdout).collect()).unwrap().median
}

fn at_best(simulation: &Simulation, name: &str, seeds: Range<u64>) -> f64 {
    let candidates = Contender::candidates(name, simulation).unwrap();
    candidates.iter().map(|contender| regret(simulation, contender, seeds.clone())).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_default_beats_its_peers_at_their_best() {
    let simulation = simulation();
    let bayes = at_best(&simulation, "bayes", SEEDS);
    for peer in
        ["ucb", "epsilon-greedy", "rules", "bpftune", "bpftune by destination", "static cubic", "static bbr", "ab"]
    {
        let peer_score = at_best(&simulation, peer, SEEDS);
        assert!(bayes < peer_score, "{peer}: {peer_score}, bayes: {bayes}");
    }
}

#[test]
fn with_equal_guard_and_hold_out_the_default_still_beats_its_peers() {
    let simulation = simulation();
    let bayes = at_best(&simulation, "bayes, guarded", SEEDS);
    for peer in ["ucb, guarded", "epsilon-greedy, guarded"] {
        let score = simulation.play(&Contender::candidates(peer, &simulation).unwrap()[0], 3);
        assert!(score.regret_with_holdout > score.regret, "{peer} holds out: {score:?}");
        let peer_score = at_best(&simulation, peer, SEEDS);
        assert!(bayes < peer_score, "{peer}: {peer_score}, bayes: {bayes}");
    }
}

#[test]
fn the_default_beats_the_best_peers_whatever_retransmissions_cost() {
    for retransmit_price in [0.0, 5.0] {
        let objective = Objective { retransmit_price, ..Objective::default() };
        let simulation = Simulation::new(POPULATION, OUTCOMES, objective).unwrap();
        let bayes = at_best(&simulation, "bayes", SEEDS);
        for peer in ["ucb", "epsilon-greedy"] {
            let peer_score = at_best(&simulation, peer, SEEDS);
            assert!(bayes < peer_score, "at a price of {retransmit_price}: {peer}: {peer_score}, bayes: {bayes}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_score_and_another_one_another() {
    let simulation = simulation();
    let bayes = &Contender::candidates("bayes", &simulation).unwrap()[0];
    assert_eq!(simulation.play(bayes, 1), simulation.play(bayes, 1));
    assert_ne!(simulation.play(bayes, 1).regret, simulation.play(bayes, 2).regret);
}

#[test]
fn the_table_has_the_expected_values_for_the_simulated_paths() {
    let simulation = simulation();
    let kind = |name: &str| simulation.kinds().iter().position(|kind| *kind == name).unwrap();
    let (bbr, bbr_cpu) = (ArmId(1), ArmId(2));
    assert!(simulation.gain(kind("very-lossy"), false, bbr) > 1.0, "with 10 % of loss CUBIC carries next to nothing");
    assert!(simulation.gain(kind("far-lossy"), false, bbr) > 0.3);
    assert!(simulation.gain(kind("fixed"), false, bbr).abs() < 0.3);
    assert!(simulation.gain(kind("fixed"), true, bbr) < -0.1, "BBR without its CPU");
    assert!(simulation.gain(kind("fixed"), true, bbr_cpu) > simulation.gain(kind("fixed"), true, bbr) + 0.05);
}

#[test]
fn regret_is_never_negative() {
    let simulation = simulation();
    for name in Contender::NAMES {
        let score = simulation.play(&Contender::candidates(name, &simulation).unwrap()[0], 3);
        assert!(score.regret > 0.0 && score.good > 0.0 && score.good <= 1.0, "{name}: {score:?}");
    }
}

#[test]
fn an_unknown_policy_is_rejected() {
    let error = Contender::candidates("oracle", &simulation()).unwrap_err().to_string();
    assert!(error.starts_with("`oracle` is not a policy; expected one of static cubic, "), "{error}");
}

#[test]
fn incompatible_files_are_rejected() {
    let refusal =
        |population: &str, outcomes: &str| Simulation::new(population, outcomes, Objective::default()).unwrap_err();
    assert!(refusal("{}", OUTCOMES).starts_with("population: missing field"));
    let other = POPULATION.replace("\"far-shallow\"", "\"moon\"");
    assert_eq!(refusal(&other, OUTCOMES), "outcomes: `moon` lacks everything; run tools/policy_outcomes.py");
    let newer = OUTCOMES.replacen("\"format\": 1", "\"format\": 9", 1);
    assert_eq!(refusal(POPULATION, &newer), "outcomes: format 9, expected 1");
}
