//! Tests of the policies other than the default one.

use crate::synthetic::{BBR, CUBIC, Luck, arms, at, outcome, prefix, run};
use serde_json::json;
use std::sync::Arc;
use thalweg_policy::{
    Ab, AbUnit, ArmId, Arms, Attributes, Bpftune, BpftuneKey, BpftuneSettings, Class, Direction, Greedy, Loss,
    Objective, Outcome, Places, Policy, Rules, RulesError, Static, Ucb,
};
use thalweg_units::{Packets, Rate, Span, Time};

const NOW: Time = Time(0);

fn probability(policy: &dyn Policy, to: &str, arm: ArmId) -> f64 {
    policy.weights(prefix(to), Class::default(), NOW).probability(arm)
}

fn four_arms() -> Arms {
    Arms::named(&["cubic", "bbr", "htcp", "dctcp"], "cubic").unwrap()
}

/// Returns an outcome with the values that bpftune uses.
fn seen(arm: ArmId, rtt_us: u64, megabytes_per_s: u64) -> Outcome {
    Outcome {
        rtt_min: Some(Span::from_micros(rtt_us)),
        delivery_rate: Some(Rate(8_000_000 * megabytes_per_s)),
        ..outcome(prefix("192.0.2.0/24"), arm, 100.0)
    }
}

fn costs(policy: &Bpftune) -> Vec<f64> {
    policy.explain(prefix("192.0.2.0/24"), NOW).arms.iter().map(|view| view.cost.unwrap()).collect()
}

#[test]
fn bpftune_chooses_from_the_fourth_connection_on() {
    let mut policy = Bpftune::new(four_arms(), BpftuneSettings::default());
    for _ in 0..3 {
        assert_eq!(probability(&policy, "192.0.2.0/24", CUBIC), 1.0);
        policy.observe(&seen(CUBIC, 3, 1000), NOW);
    }
    // All arms are untried, with zero cost.
    for number in 0..4 {
        assert!((probability(&policy, "192.0.2.0/24", ArmId(number)) - 0.25).abs() < 1e-12);
    }
}

#[test]
fn bpftune_costs_match_its_formula() {
    let mut policy = Bpftune::new(four_arms(), BpftuneSettings { learning_rate: 2, ..BpftuneSettings::default() });
    (0..3).for_each(|_| drop(policy.observe(&seen(CUBIC, 3, 1000), NOW)));
    policy.observe(&seen(BBR, 3, 10_000), NOW);
    assert_eq!(costs(&policy), [0.0; 4], "the best in both costs nothing");
    policy.observe(&seen(CUBIC, 3, 1000), NOW);
    assert_eq!(costs(&policy)[0], 900_000.0, "a tenth of the rate; the first sample is the cost");
    policy.observe(&seen(CUBIC, 9, 1000), NOW);
    // The cost of the sample is higher by 10^6 (9 - 3) / 3, and the arm's cost moves by 1/16 of the difference.
    assert_eq!(costs(&policy)[0], 900_000.0 + 125_000.0);
}

#[test]
fn bpftune_ignores_connections_without_an_rtt_or_a_rate() {
    let mut policy = Bpftune::new(four_arms(), BpftuneSettings::default());
    (0..3).for_each(|_| drop(policy.observe(&seen(CUBIC, 3, 1000), NOW)));
    policy.observe(&seen(BBR, 3, 10_000), NOW);
    policy.observe(&Outcome { rtt_min: None, ..seen(CUBIC, 3, 1000) }, NOW);
    policy.observe(&Outcome { delivery_rate: None, ..seen(CUBIC, 3, 1000) }, NOW);
    assert_eq!(costs(&policy), [0.0; 4]);
    policy.observe(&seen(CUBIC, 6, 10_000), NOW);
    assert_eq!(costs(&policy)[0], 1_000_000.0, "the smallest RTT is still 3 microseconds");
}

#[test]
fn bpftune_selects_the_cheapest_arm_for_19_of_20_connections() {
    let mut policy = Bpftune::new(four_arms(), BpftuneSettings::default());
    (0..3).for_each(|_| drop(policy.observe(&seen(CUBIC, 3, 1000), NOW)));
    for (arm, rate) in [(0, 1000), (1, 10_000), (2, 500), (3, 100), (0, 1000), (1, 9000)] {
        policy.observe(&seen(ArmId(arm), 4 - u64::from(arm == 1), rate), NOW);
    }
    assert!((probability(&policy, "192.0.2.0/24", BBR) - (0.95 + 0.05 / 4.0)).abs() < 1e-12);
}

#[test]
fn bpftune_never_switches_away_from_an_arm_that_the_kernel_lacks() {
    // The arm's outcomes never arrive, so its cost stays 0: the weakness of this policy.
    let mut policy = Bpftune::new(four_arms(), BpftuneSettings::default());
    for number in 0..60 {
        policy.observe(&seen(ArmId(number % 3), 3 + u64::from(number % 2), 100), NOW);
    }
    assert!(probability(&policy, "192.0.2.0/24", ArmId(3)) > 0.9);
}

#[test]
fn bpftune_shares_its_statistics_among_all_hosts_behind_a_gateway() {
    let learned = |key| {
        let mut policy = Bpftune::new(four_arms(), BpftuneSettings { key, ..BpftuneSettings::default() });
        (0..8).for_each(|_| drop(policy.observe(&seen(CUBIC, 3, 1000), NOW)));
        probability(&policy, "203.0.113.0/24", CUBIC) < 1.0
    };
    assert!(learned(BpftuneKey::Gateway));
    assert!(!learned(BpftuneKey::Destination));
}

#[test]
fn bpftune_moves_connections_that_lose_more_than_one_in_64() {
    let policy = Bpftune::new(four_arms(), BpftuneSettings::default());
    let loss = |arm, segments_out, retransmits| {
        let prefix = prefix("192.0.2.0/24");
        policy.on_loss(&Loss { prefix, arm, segments_out: Packets(segments_out), retransmits: Packets(retransmits) })
    };
    assert_eq!(loss(CUBIC, 640, 10), None);
    assert_eq!(loss(CUBIC, 640, 11), Some(BBR));
    assert_eq!(loss(CUBIC, 63, 1), Some(BBR), "the first loss among the first 63 segments is enough");
    assert_eq!(loss(BBR, 640, 11), None);
}

fn policy_file() -> serde_json::Value {
    json!({"format": 1, "default": "cubic", "source": "a study", "rules": [
        {"name": "lossy", "algorithm": "bbr", "when": {"loss_ratio": {"at_least": 0.01}}, "reason": "Losses.", "source": "x"},
        {"name": "near", "algorithm": "bbr", "when": {"rtt_s": {"at_most": 0.005}}, "reason": "Near.", "evidence": []},
    ]})
}

#[test]
fn the_first_rule_that_applies_decides() {
    let mut rules = Rules::from_value(arms(), policy_file(), Arc::default()).unwrap();
    assert_eq!(probability(&rules, "192.0.2.0/24", CUBIC), 1.0, "what is not known meets no condition");
    let lossy = Outcome { retransmits: Packets(4), ..outcome(prefix("192.0.2.0/24"), CUBIC, 100.0) };
    rules.observe(&lossy, NOW);
    assert_eq!(probability(&rules, "192.0.2.0/24", BBR), 1.0);
    assert_eq!(rules.explain(prefix("192.0.2.0/24"), NOW).sentence, "bbr by the rule `lossy`: Losses.");
    assert_eq!(probability(&rules, "198.51.100.0/24", CUBIC), 1.0, "another destination is another path");
}

#[test]
fn losses_of_bbr_do_not_count_for_the_path() {
    let mut rules = Rules::from_value(arms(), policy_file(), Arc::default()).unwrap();
    let lossy = Outcome { retransmits: Packets(20), ..outcome(prefix("192.0.2.0/24"), BBR, 100.0) };
    (0..9).for_each(|_| drop(rules.observe(&lossy, NOW)));
    assert_eq!(probability(&rules, "192.0.2.0/24", CUBIC), 1.0);
}

#[test]
fn an_invalid_policy_file_is_rejected() {
    let refusal = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut file = policy_file();
        change(&mut file);
        Rules::from_value(arms(), file, Arc::default()).unwrap_err().to_string()
    };
    assert!(refusal(&|file| file["format"] = json!(2)).starts_with("format: found 2, expected 1"));
    let unknown = refusal(&|file| file["rules"][1]["algorithm"] = json!("vegas"));
    assert!(
        unknown.starts_with(
            "`vegas` in `rules.near.algorithm`, which is not among the algorithms to choose from (cubic, bbr"
        ),
        "{unknown}"
    );
    let key = refusal(&|file| file["rules"][0]["when"] = json!({"losses": {"at_least": 1}}));
    assert!(key.contains("losses") && key.contains("loss_ratio"), "{key}");
}

fn rule_when(when: serde_json::Value, attributes: Attributes) -> Result<Rules, RulesError> {
    let rules = json!([{"name": "here", "algorithm": "bbr", "when": when}]);
    Rules::from_value(arms(), json!({"format": 1, "default": "cubic", "rules": rules}), Arc::new(attributes))
}

fn table() -> Places {
    let mut places = Places::default();
    let columns = ["as".to_owned(), "country".to_owned()];
    for (network, autonomous_system, country) in
        [("192.0.0.0/16", "AS64496", "DE"), ("192.0.2.0/24", "AS64497", ""), ("2001:db8::/32", "AS64496", "FR")]
    {
        places.add(&columns, prefix(network), vec![autonomous_system.to_owned(), country.to_owned()]);
    }
    places
}

#[test]
fn a_network_rule_applies_from_the_first_connection() {
    let rules = rule_when(json!({"prefix": ["198.51.0.0/16", "2001:db8::/32"]}), Attributes::default()).unwrap();
    assert_eq!(probability(&rules, "198.51.100.0/24", BBR), 1.0);
    assert_eq!(probability(&rules, "2001:db8:7::/48", BBR), 1.0);
    assert_eq!(probability(&rules, "192.0.2.0/24", BBR), 0.0);
}

#[test]
fn a_prefix_table_is_searched_by_longest_prefix_match() {
    let attributes = || Attributes { places: table(), ..Attributes::default() };
    let rules = rule_when(json!({"as": ["AS64496", "AS64500"]}), attributes()).unwrap();
    assert_eq!(probability(&rules, "192.0.7.0/24", BBR), 1.0);
    assert_eq!(probability(&rules, "192.0.2.0/24", BBR), 0.0, "a longer network is another's");
    assert_eq!(probability(&rules, "198.51.100.0/24", BBR), 0.0, "the operator of this network is unknown");
    let rules = rule_when(json!({"as": ["AS64497"], "country": [""]}), attributes()).unwrap();
    assert_eq!(probability(&rules, "192.0.2.0/24", BBR), 0.0, "what is empty is not known");
}

#[test]
fn a_rule_for_another_server_is_ignored_and_one_for_this_server_applies() {
    let attributes = || Attributes { host: [("pop".to_owned(), "lon".to_owned())].into(), ..Attributes::default() };
    let share = |pop: &str| probability(&rule_when(json!({"pop": [pop]}), attributes()).unwrap(), "192.0.2.0/24", BBR);
    assert_eq!((share("lon"), share("fra")), (1.0, 0.0));
}

#[test]
fn a_rule_can_depend_on_the_side_that_opens_the_connection() {
    let rules = rule_when(json!({"direction": ["out"]}), Attributes::default()).unwrap();
    let share =
        |direction| rules.weights(prefix("192.0.2.0/24"), Class { direction, size: None }, NOW).probability(BBR);
    assert_eq!((share(Direction::Out), share(Direction::In)), (1.0, 0.0));
}

#[test]
fn a_rule_with_an_unknown_value_is_rejected_with_the_known_ones() {
    let refusal = |when| rule_when(when, Attributes::default()).unwrap_err().to_string();
    let unknown = refusal(json!({"as": ["AS64496"]}));
    assert!(
        unknown.starts_with("rules.here.when.as: this value is unknown") && unknown.contains("rtt_s, prefix"),
        "{unknown}"
    );
    let small = refusal(json!({"prefix": ["192.0.2.128/25"]}));
    assert!(small.contains("192.0.2.128/25 is smaller than") && small.contains("192.0.2.0/24"), "{small}");
    assert!(refusal(json!({"prefix": ["192.0.2.1/24"]})).contains("bits beyond its length"), "a network");
    assert!(refusal(json!({"direction": ["up"]})).contains("\"in\" or \"out\""));
    assert!(refusal(json!({"loss_ratio": ["high"]})).contains("at_least"));
}

#[test]
fn an_ab_test_by_prefix_keeps_one_arm_per_destination() {
    let ab = Ab::new(arms(), BBR, 0.3, AbUnit::Prefix, 7);
    let mut treated = 0.0;
    for number in 0..250 {
        let to = format!("198.51.{number}.0/24");
        let share = probability(&ab, &to, BBR);
        assert!(share == 0.0 || share == 1.0);
        assert_eq!(share, probability(&ab, &to, BBR));
        treated += share;
    }
    // 250 destinations with a probability of 0.3: a mean of 75 with a standard deviation of 7.2.
    assert!((46.0..=104.0).contains(&treated), "{treated}");
}

#[test]
fn after_the_pilot_all_connections_get_the_treatment() {
    let ab = Ab::new(arms(), BBR, 0.1, AbUnit::Connection, 7).until(at(100));
    let share = |now| ab.weights(prefix("192.0.2.0/24"), Class::default(), now).probability(BBR);
    assert!((share(at(99)) - 0.1).abs() < 1e-12);
    assert_eq!(share(at(100)), 1.0);
}

#[test]
fn a_treatment_that_is_the_default_is_explained_as_no_comparison() {
    let ab = Ab::new(arms(), arms().default(), 0.1, AbUnit::Connection, 7);
    let explanation = ab.explain(prefix("192.0.2.0/24"), at(1));
    assert!(explanation.sentence.contains("nothing is compared"), "{}", explanation.sentence);
}

#[test]
fn simple_learners_find_an_arm_that_is_twice_as_fast() {
    let mut greedy = Greedy::new(arms(), Objective::default(), Default::default());
    let mut ucb = Ucb::new(arms(), Objective::default(), Default::default());
    for policy in [&mut greedy as &mut dyn Policy, &mut ucb] {
        let mut luck = Luck::new(3);
        run(policy, prefix("192.0.2.0/24"), [400.0, 200.0], 100, &mut luck);
        let share = run(policy, prefix("192.0.2.0/24"), [400.0, 200.0], 100, &mut luck);
        assert!(share > 0.8, "{}: {share}", policy.name());
    }
}

#[test]
fn static_weights_do_not_change() {
    let mut policy = Static::of(arms(), &[1.0, 3.0]);
    run(&mut policy, prefix("192.0.2.0/24"), [100.0, 900.0], 50, &mut Luck::new(1));
    assert_eq!(probability(&policy, "192.0.2.0/24", BBR), 0.75);
}
