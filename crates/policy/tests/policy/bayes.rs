//! Tests of the default policy.

use crate::synthetic::{BBR, CUBIC, Luck, arms, at, bayes, outcome, prefix, run};
use proptest::prelude::*;
use thalweg_policy::{ArmId, Bayes, BayesSettings, Change, Class, Direction, Group, Objective, Outcome, Policy};
use thalweg_units::{Bytes, Packets, Span, Time};

const HERE: &str = "192.0.2.0/24";

fn probability(policy: &Bayes, to: &str, arm: ArmId) -> f64 {
    policy.weights(prefix(to), Class::default(), at(1_700_000_000)).probability(arm)
}

#[test]
fn arms_are_equally_likely_before_any_outcome() {
    assert!((probability(&bayes(), HERE, BBR) - 0.5).abs() < 0.05);
}

#[test]
fn an_arm_that_is_twice_as_fast_gets_nearly_all_weight_within_twenty_connections() {
    let mut settled = 0;
    for seed in 0..50 {
        let (mut policy, mut luck) = (bayes(), Luck::new(seed));
        run(&mut policy, prefix(HERE), [400.0, 200.0], 20, &mut luck);
        settled += u32::from(run(&mut policy, prefix(HERE), [400.0, 200.0], 20, &mut luck) >= 0.8);
    }
    assert!(settled >= 45, "{settled} of 50");
}

#[test]
fn an_arm_that_is_twice_as_slow_gets_almost_no_weight() {
    let mut luck = Luck::new(5);
    let mut policy = bayes();
    run(&mut policy, prefix(HERE), [200.0, 400.0], 60, &mut luck);
    assert!(run(&mut policy, prefix(HERE), [200.0, 400.0], 100, &mut luck) < 0.05);
}

#[test]
fn a_path_on_which_bbr_becomes_better_is_followed_within_thirty_connections() {
    let mut followed = 0;
    for seed in 0..50 {
        let (mut policy, mut luck) = (bayes(), Luck::new(100 + seed));
        run(&mut policy, prefix(HERE), [200.0, 260.0], 150, &mut luck);
        run(&mut policy, prefix(HERE), [2000.0, 260.0], 30, &mut luck);
        followed += u32::from(run(&mut policy, prefix(HERE), [2000.0, 260.0], 20, &mut luck) >= 0.8);
    }
    assert!(followed >= 45, "{followed} of 50");
}

#[test]
fn a_change_of_the_path_is_an_event_with_a_reason() {
    let (mut policy, mut luck) = (bayes(), Luck::new(9));
    run(&mut policy, prefix(HERE), [200.0, 200.0], 100, &mut luck);
    let events: Vec<_> = (0..20)
        .flat_map(|number| policy.observe(&outcome(prefix(HERE), CUBIC, luck.ms(4000.0)), at(1_700_000_200 + number)))
        .collect();
    assert_eq!(events[0].change, Change::PathChanged);
    assert!(events[0].reason.contains("worse"), "{}", events[0].reason);
    assert_eq!(events.len(), 1);
}

#[test]
fn a_new_destination_starts_with_the_estimates_of_its_neighbours() {
    let (mut policy, mut luck) = (bayes(), Luck::new(4));
    for number in 0..12 {
        run(&mut policy, prefix(&format!("198.51.{number}.0/24")), [600.0, 200.0], 40, &mut luck);
    }
    assert!(probability(&policy, "198.51.100.0/24", BBR) > 0.85, "{}", probability(&policy, "198.51.100.0/24", BBR));
    let explanation = policy.explain(prefix("198.51.100.0/24"), at(1_700_000_000));
    assert!(
        explanation.sentence.contains("no connection to 198.51.100.0/24 has closed yet"),
        "{}",
        explanation.sentence
    );
}

#[test]
fn an_explanation_mentions_neighbours_only_if_there_are_any() {
    let (mut policy, mut luck) = (bayes(), Luck::new(4));
    let explained = |policy: &Bayes, to: &str| policy.explain(prefix(to), at(1_700_000_000)).sentence;
    let nothing_known = explained(&policy, HERE);
    assert!(nothing_known.contains("or a neighbouring prefix has closed yet, and the assumption"), "{nothing_known}");
    run(&mut policy, prefix(HERE), [600.0, 200.0], 40, &mut luck);
    let alone = explained(&policy, HERE);
    assert!(alone.contains(" recent connections indicate"), "{alone}");
    run(&mut policy, prefix("198.51.101.0/24"), [600.0, 200.0], 40, &mut luck);
    let beside_another = explained(&policy, HERE);
    assert!(beside_another.contains(" recent connections and neighbouring prefixes"), "{beside_another}");
}

#[test]
fn neighbours_that_disagree_have_no_influence() {
    let (mut policy, mut luck) = (bayes(), Luck::new(4));
    for number in 0..12 {
        let medians = if number % 2 == 0 { [600.0, 200.0] } else { [200.0, 600.0] };
        run(&mut policy, prefix(&format!("198.51.{number}.0/24")), medians, 40, &mut luck);
    }
    let share = probability(&policy, "198.51.100.0/24", BBR);
    assert!((0.2..=0.8).contains(&share), "{share}");
}

#[test]
fn a_slow_path_without_outcomes_of_other_arms_does_not_shift_the_weights() {
    let (mut policy, mut luck) = (bayes(), Luck::new(8));
    (0..10).for_each(|_| drop(policy.observe(&outcome(prefix(HERE), BBR, luck.ms(5000.0)), at(1_700_000_000))));
    // No connection uses CUBIC here.
    assert!((0.3..=0.7).contains(&probability(&policy, HERE, BBR)), "{}", probability(&policy, HERE, BBR));
}

#[test]
fn application_limited_outcomes_are_ignored() {
    let mut policy = bayes();
    let before = probability(&policy, HERE, BBR);
    for _ in 0..50 {
        let idle = Outcome { completion: None, is_app_limited: true, ..outcome(prefix(HERE), BBR, 60_000.0) };
        policy.observe(&idle, at(1_700_000_000));
    }
    assert_eq!(probability(&policy, HERE, BBR), before);
}

#[test]
fn a_timed_transfer_counts_on_a_connection_with_idle_periods() {
    let objective = Objective::default();
    let idle = Outcome { is_app_limited: true, ..outcome(prefix(HERE), BBR, 100.0) };
    assert_eq!(objective.reward(&idle), objective.reward(&outcome(prefix(HERE), BBR, 100.0)));
}

#[test]
fn transfers_that_fit_into_the_initial_window_are_ignored() {
    let small = Outcome { acked: Bytes(10_000), ..outcome(prefix(HERE), BBR, 100.0) };
    assert_eq!(Objective::default().reward(&small), None);
}

#[test]
fn algorithms_chosen_elsewhere_are_ignored() {
    let mut policy = bayes();
    let before = probability(&policy, HERE, BBR);
    let untouched = Outcome { group: Group::Untouched, ..outcome(prefix(HERE), BBR, 10.0) };
    (0..50).for_each(|_| drop(policy.observe(&untouched, at(1_700_000_000))));
    assert_eq!(probability(&policy, HERE, BBR), before);
}

#[test]
fn retransmissions_have_the_configured_price() {
    let lossy = Outcome { retransmits: Packets(104), ..outcome(prefix(HERE), BBR, 100.0) };
    let reward = |retransmit_price| Objective { retransmit_price, ..Objective::default() }.reward(&lossy).unwrap();
    assert!((reward(0.0) - reward(2.0) - 1.0).abs() < 1e-12, "half of the segments, at a price of 2");
}

#[test]
fn long_connections_are_judged_by_throughput_and_short_ones_by_time() {
    let objective = Objective::default();
    let reward =
        |bytes, ms| objective.reward(&Outcome { acked: Bytes(bytes), ..outcome(prefix(HERE), BBR, ms) }).unwrap();
    assert!((reward(8_000_000, 2000.0) - reward(4_000_000, 1000.0)).abs() < 1e-12, "the same throughput");
    assert!(reward(200_000, 200.0) < reward(100_000, 100.0), "the same throughput, but it took longer");
    assert!((reward(100_000, 100.0) - reward(100_000, 200.0) - 2f64.ln()).abs() < 1e-12);
}

#[test]
fn directions_are_learned_separately() {
    let (mut policy, mut luck) = (bayes(), Luck::new(6));
    for number in 0..60 {
        let arm = ArmId(number % 2);
        let out =
            Outcome { direction: Direction::Out, ..outcome(prefix(HERE), arm, luck.ms([400.0, 100.0][arm.index()])) };
        policy.observe(&out, at(1_700_000_000));
    }
    let probability =
        |direction| policy.weights(prefix(HERE), Class { direction, size: None }, at(1_700_000_000)).probability(BBR);
    assert!(probability(Direction::Out) > 0.95);
    assert!(probability(Direction::In) < 0.7);
}

#[test]
fn old_outcomes_are_discounted() {
    let (mut policy, mut luck) = (bayes(), Luck::new(6));
    run(&mut policy, prefix(HERE), [200.0, 300.0], 60, &mut luck);
    let later =
        |days: u64| policy.weights(prefix(HERE), Class::default(), at(1_700_000_000 + days * 86_400)).probability(BBR);
    assert!(later(0) < 0.05 && later(60) > 0.2, "{} {}", later(0), later(60));
}

#[test]
fn the_least_recently_updated_destinations_are_evicted() {
    let settings = BayesSettings { most_prefixes: 64, ..BayesSettings::default() };
    let mut policy = Bayes::new(arms(), Objective::default(), settings);
    for number in 0..200u64 {
        let to = prefix(&format!("10.{}.{}.0/24", number / 100, number % 100));
        (0..8).for_each(|n| drop(policy.observe(&outcome(to, ArmId(n % 2), 400.0 / f64::from(1 + n % 2)), at(number))));
    }
    let count = |to: &str| policy.explain(prefix(to), at(200)).arms.iter().map(|view| view.connections).sum::<f64>();
    assert_eq!(count("10.0.0.0/24"), 0.0);
    assert!(count("10.1.99.0/24") > 7.0);
    assert!(probability(&policy, "10.1.200.0/24", BBR) > 0.8, "those that are left still speak for their network");
}

#[test]
fn an_explanation_states_the_effect_and_its_probability() {
    let (mut policy, mut luck) = (bayes(), Luck::new(2));
    run(&mut policy, prefix(HERE), [400.0, 200.0], 60, &mut luck);
    let explanation = policy.explain(prefix(HERE), at(1_700_000_060));
    assert!(explanation.sentence.starts_with("bbr gets over 99 % of new connections: 5"), "{}", explanation.sentence);
    assert!(explanation.sentence.contains("times as good as cubic (95 %: "), "{}", explanation.sentence);
    let gain = explanation.arms[1].gain.unwrap();
    assert!(gain.low < 2f64.ln() && 2f64.ln() < gain.high && gain.low > 0.0, "{gain:?}");
}

#[test]
fn identical_outcomes_yield_identical_weights() {
    let weights = || {
        let (mut policy, mut luck) = (bayes(), Luck::new(2));
        run(&mut policy, prefix(HERE), [400.0, 300.0], 60, &mut luck);
        policy.weights(prefix(HERE), Class::default(), at(1_700_000_060))
    };
    assert_eq!(weights(), weights());
}

prop_compose! {
    fn any_outcome()(
        network in 0u8..3, number in 0u8..4, arm in 0u8..2, group in 0u8..3, bytes in 0u64..1 << 40,
        fct in prop::option::of(0u64..1 << 44),
        busy in 0u64..1 << 44, app: bool, segments in 0u64..1 << 40, retransmits in 0u64..1 << 40,
    ) -> Outcome {
        Outcome {
            group: [Group::Treated, Group::HeldOut, Group::Untouched][usize::from(group)],
            acked: Bytes(bytes),
            completion: fct.map(Span),
            busy: Span(busy),
            is_app_limited: app,
            segments: Packets(segments),
            retransmits: Packets(retransmits),
            ..outcome(prefix(&format!("10.{network}.{number}.0/24")), ArmId(arm), 1.0)
        }
    }
}

proptest! {
    #[test]
    fn weights_are_probabilities_for_any_outcomes(
        outcomes in prop::collection::vec(any_outcome(), 0..120), step in 0u64..1 << 52,
    ) {
        let mut policy = bayes();
        let mut now = Time(0);
        for outcome in &outcomes {
            now = Time(now.0.saturating_add(step));
            policy.observe(outcome, now);
            let weights = policy.weights(outcome.prefix, Class::default(), now);
            prop_assert!((weights.probabilities().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(weights.probabilities().iter().all(|&p| p >= 0.004), "none is forgotten: {weights:?}");
        }
    }
}
