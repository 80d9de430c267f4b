//! Tests that learned state survives a restart.

use crate::synthetic::{Luck, arms, at, bayes, outcome, prefix};
use serde_json::json;
use std::sync::Arc;
use thalweg_policy::{
    Ab, AbUnit, AnyPolicy, ArmId, Arms, Bpftune, Class, Greedy, Group, Guard, GuardSettings, Objective, Outcome,
    RestoreError, Rules, Snapshot, Static, Ucb,
};

fn policies() -> Vec<AnyPolicy> {
    let rules = json!({"format": 1, "default": "cubic", "rules": [
        {"name": "far", "algorithm": "bbr", "when": {"rtt_s": {"at_least": 0.01}}},
    ]});
    vec![
        AnyPolicy::Static(Static::of(arms(), &[0.3, 0.7])),
        AnyPolicy::Rules(Rules::from_value(arms(), rules, Arc::default()).unwrap()),
        AnyPolicy::Bpftune(Bpftune::new(arms(), Default::default())),
        AnyPolicy::Ab(Ab::new(arms(), ArmId(1), 0.5, AbUnit::Prefix, 3)),
        AnyPolicy::Ucb(Ucb::new(arms(), Objective::default(), Default::default())),
        AnyPolicy::Greedy(Greedy::new(arms(), Objective::default(), Default::default())),
        AnyPolicy::Bayes(bayes()),
    ]
}

fn learned(policy: AnyPolicy) -> Guard {
    let mut guard = Guard::new(arms(), policy, Objective::default(), Default::default());
    let mut luck = Luck::new(1);
    for number in 0..300u64 {
        let group = if number % 9 == 0 { Group::HeldOut } else { Group::Treated };
        let arm = ArmId(u8::from(number % 3 > 0));
        let to = prefix(&format!("10.0.{}.0/24", number % 5));
        guard.observe(&Outcome { group, ..outcome(to, arm, luck.ms(300.0)) }, at(number));
    }
    guard
}

#[test]
fn a_policy_resumes_from_its_snapshot() {
    for policy in policies() {
        let mut guard = learned(policy);
        let text = Snapshot::of(&guard).to_json();
        let mut again = Snapshot::restore(&text).unwrap();
        assert_eq!(Snapshot::of(&again).to_json(), text);
        for number in 0..20 {
            let (to, now) = (prefix("10.0.1.0/24"), at(400 + number));
            let weights = guard.weights(to, Class::default(), now);
            assert_eq!(again.weights(to, Class::default(), now), weights);
            let closed = outcome(to, ArmId(1), 100.0);
            assert_eq!(again.observe(&closed, now), guard.observe(&closed, now));
        }
    }
}

#[test]
fn an_incompatible_snapshot_is_rejected() {
    let text = Snapshot::of(&learned(AnyPolicy::Bayes(bayes()))).to_json();
    let refusal = |text: &str| Snapshot::restore(text).unwrap_err();
    assert!(matches!(refusal(&text[..text.len() / 2]), RestoreError::Form(_)));
    let other = refusal(&text.replacen("\"format\":1", "\"format\":2", 1));
    assert_eq!(other, RestoreError::Format(2));
    assert!(other.to_string().ends_with("move the file away to start over"));
}

#[test]
fn learned_state_is_kept_under_new_settings() {
    for policy in policies() {
        let old = learned(policy.clone());
        let settings = GuardSettings { holdout: 0.2, ..GuardSettings::default() };
        let mut new = Guard::new(arms(), policy, Objective::default(), settings);
        new.restore_from(old.clone()).unwrap();
        let to = prefix("10.0.1.0/24");
        assert_eq!(new.account(to), old.account(to));
        assert_eq!(new.difference(to), old.difference(to));
        let weights = new.weights(to, Class::default(), at(400));
        assert_eq!(weights.probabilities(), old.weights(to, Class::default(), at(400)).probabilities());
        assert_eq!(weights.holdout(), 0.2);
    }
}

#[test]
fn learned_state_of_another_setup_is_not_restored() {
    let bayes = || AnyPolicy::Bayes(bayes());
    let fresh = |arms: Arms, policy, objective| Guard::new(arms, policy, objective, GuardSettings::default());
    let price = Objective { retransmit_price: 3.0, ..Objective::default() };
    let other_arms = Arms::named(&["cubic", "reno"], "cubic").unwrap();
    let htcp = AnyPolicy::Static(Static::of(arms(), &[0.5, 0.5]));
    for (mut new, differs) in [
        (fresh(other_arms, bayes(), Objective::default()), "arms"),
        (fresh(arms(), bayes(), price), "objective"),
        (fresh(arms(), htcp, Objective::default()), "policy"),
    ] {
        assert!(new.restore_from(learned(bayes())).unwrap_err().contains(differs));
        assert_eq!(new.destinations().count(), 0);
    }
}
