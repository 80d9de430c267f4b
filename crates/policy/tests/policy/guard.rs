//! Tests of the guard.

use crate::synthetic::{BBR, CUBIC, Luck, arms, at, bayes, outcome, prefix};
use thalweg_policy::{
    AnyPolicy, Arms, Change, Class, Group, Guard, GuardSettings, Host, Loss, Objective, Outcome, PolicyEvent, Prefix,
    Static, Weights,
};
use thalweg_policy::{Bpftune, BpftuneSettings};
use thalweg_units::{Packets, Span};

const HERE: &str = "192.0.2.0/24";
const START: u64 = 1_700_000_000;

fn guarded(policy: AnyPolicy, settings: GuardSettings) -> Guard {
    Guard::new(arms(), policy, Objective::default(), settings)
}

fn always_bbr(settings: GuardSettings) -> Guard {
    guarded(AnyPolicy::Static(Static::only(arms(), BBR)), settings)
}

/// Simulates connections, one per second, with these median completion times of CUBIC and BBR. Returns the changes.
fn play(
    guard: &mut Guard,
    to: &[Prefix],
    medians_ms: [f64; 2],
    seconds: std::ops::Range<u64>,
    luck: &mut Luck,
) -> Vec<PolicyEvent> {
    let mut events = Vec::new();
    for second in seconds {
        let (now, prefix) = (at(START + second), to[(luck.unit() * to.len() as f64) as usize]);
        let weights = guard.weights(prefix, Class::default(), now);
        let is_held_out = luck.unit() < weights.holdout();
        let arm = if is_held_out { CUBIC } else { weights.draw(luck.unit()) };
        let group = if is_held_out { Group::HeldOut } else { Group::Treated };
        let ms = luck.ms(medians_ms[arm.index()]);
        events.extend(guard.observe(&Outcome { group, ..outcome(prefix, arm, ms) }, now));
    }
    events
}

fn destinations(n: u8) -> Vec<Prefix> {
    (0..n).map(|number| prefix(&format!("10.{}.{number}.0/24", number % 3))).collect()
}

fn is_withdrawal(event: &PolicyEvent) -> bool {
    matches!(event.change, Change::Withdrawn { .. })
}

#[test]
fn the_false_alarm_rate_over_1000_null_runs_is_at_most_nominal() {
    let settings = GuardSettings { holdout: 0.25, ..GuardSettings::default() };
    let to = destinations(12);
    let mut alarms = 0;
    for seed in 0..1000 {
        let mut guard = always_bbr(settings.clone());
        let events = play(&mut guard, &to, [200.0, 200.0], 0..1200, &mut Luck::new(seed));
        alarms += u32::from(events.iter().any(is_withdrawal));
    }
    let nominal = (1000.0 * settings.alpha) as u32;
    assert!(alarms <= nominal, "{alarms} of 1000 runs, at most {nominal} allowed");
}

/// Shows why the guard does not use a fixed-sample test.
#[test]
fn a_fixed_sample_test_evaluated_continuously_exceeds_the_nominal_false_alarm_rate() {
    let mut alarms = 0;
    for seed in 0..200 {
        let mut luck = Luck::new(seed);
        let (mut n, mut sum, mut squares) = (0.0f64, 0.0, 0.0);
        let is_alarm = (0..300).any(|_| {
            let difference = (luck.ms(200.0) / luck.ms(200.0)).ln();
            (n, sum, squares) = (n + 1.0, sum + difference, squares + difference * difference);
            n >= 10.0 && sum / squares.sqrt() > 1.645
        });
        alarms += u32::from(is_alarm);
    }
    assert!(alarms > 40, "{alarms} of 200: more than four times the 5 % that one look would have");
}

#[test]
fn a_worse_treatment_is_withdrawn_with_a_reason() {
    let mut guard = always_bbr(GuardSettings::default());
    let events = play(&mut guard, &[prefix(HERE)], [200.0, 500.0], 0..600, &mut Luck::new(1));
    let withdrawal = events.iter().find(|event| is_withdrawal(event)).expect("a withdrawal");
    assert_eq!(withdrawal.prefix, Some(prefix("0.0.0.0/0")), "the one test that has seen most");
    assert!(
        withdrawal.reason.starts_with("chosen algorithms were worse than the default: 0."),
        "{}",
        withdrawal.reason
    );
    let now = at(START + 600);
    assert_eq!(guard.weights(prefix(HERE), Class::default(), now).probability(CUBIC), 1.0);
    let sentence = guard.explain(prefix(HERE), now).sentence;
    assert!(sentence.starts_with("cubic applies for another 23."), "{sentence}");
    assert!(
        sentence.contains("The policy's own choice: bbr gets 100 %"),
        "what the policy alone would do is not what is done: {sentence}"
    );
}

#[test]
fn harm_on_one_network_does_not_withdraw_the_treatment_from_others() {
    let mut guard = always_bbr(GuardSettings { holdout: 0.2, ..GuardSettings::default() });
    let (bad, good) = (prefix("10.0.0.0/24"), prefix("172.16.0.0/24"));
    let mut luck = Luck::new(3);
    let mut events = Vec::new();
    for round in 0..200u64 {
        events.extend(play(&mut guard, &[good], [400.0, 200.0], round * 20..round * 20 + 16, &mut luck));
        events.extend(play(&mut guard, &[bad], [200.0, 500.0], round * 20 + 16..round * 20 + 20, &mut luck));
    }
    let now = at(START + 4000);
    assert!(
        events
            .iter()
            .any(|event| is_withdrawal(event) && event.prefix.is_some_and(|at| at.has(bad) && at.length() > 0))
    );
    assert_eq!(guard.weights(bad, Class::default(), now).probability(CUBIC), 1.0);
    assert_eq!(guard.weights(good, Class::default(), now).probability(BBR), 1.0);
    assert_eq!(guard.weights(good, Class::default(), now).holdout(), 0.01, "the hold-out is as small as configured");
}

#[test]
fn the_policy_resumes_a_day_after_a_withdrawal() {
    let mut guard = always_bbr(GuardSettings::default());
    let mut luck = Luck::new(1);
    play(&mut guard, &[prefix(HERE)], [200.0, 500.0], 0..600, &mut luck);
    let next_day = 600 + 86_400;
    assert_eq!(guard.weights(prefix(HERE), Class::default(), at(START + next_day)).probability(BBR), 1.0);
    let events = play(&mut guard, &[prefix(HERE)], [400.0, 200.0], next_day..next_day + 600, &mut luck);
    assert!(events.iter().any(|event| event.change == Change::Resumed), "{events:?}");
    assert!(!events.iter().any(is_withdrawal));
}

#[test]
fn the_hold_out_shrinks_once_its_harm_is_significant() {
    let mut guard = always_bbr(GuardSettings::default());
    let events = play(&mut guard, &[prefix(HERE)], [500.0, 200.0], 0..600, &mut Luck::new(2));
    assert!(events.iter().any(|event| event.change == Change::HoldoutShrunk), "{events:?}");
    assert_eq!(guard.weights(prefix(HERE), Class::default(), at(START + 600)).holdout(), 0.01);
    let difference = guard.difference(prefix(HERE)).unwrap();
    assert!(difference.low > 0.0 && difference.low < 2.5f64.ln() && 2.5f64.ln() < difference.high, "{difference:?}");
}

#[test]
fn a_hold_out_that_stays_the_same_is_not_reported_as_shrunk() {
    let changes = |settings: GuardSettings| -> Vec<Change> {
        let mut guard = always_bbr(settings);
        let events = play(&mut guard, &[prefix(HERE)], [500.0, 200.0], 0..600, &mut Luck::new(2));
        events.into_iter().map(|event| event.change).collect()
    };
    let shrunk = |changes: &[Change]| changes.iter().filter(|&change| *change == Change::HoldoutShrunk).count();
    // The prefixes around the destination become significantly better as well.
    assert_eq!(shrunk(&changes(GuardSettings::default())), 1);
    assert_eq!(changes(GuardSettings { holdout: 0.5, least_holdout: 0.5, ..GuardSettings::default() }), []);
}

#[test]
fn stock_bbr_is_never_selected_while_the_host_is_short_of_cpu() {
    let arms = Arms::named(&["cubic", "bbr", "bbr_cpu"], "cubic").unwrap();
    let policy = AnyPolicy::Static(Static::of(arms.clone(), &[0.2, 0.6, 0.2]));
    let mut guard = Guard::new(arms, policy, Objective::default(), GuardSettings::default());
    let event = guard.set_host(Host { is_cpu_limited: true }, at(START)).unwrap();
    assert_eq!((event.change, event.prefix), (Change::CpuLimited, None));
    let weights = guard.weights(prefix(HERE), Class::default(), at(START));
    assert_eq!(weights.probabilities(), [0.5, 0.0, 0.5]);
    let sentence = guard.explain(prefix(HERE), at(START)).sentence;
    assert!(sentence.starts_with("cubic gets 50 % of new connections: the host is short of CPU"), "{sentence}");
    assert_eq!(guard.set_host(Host { is_cpu_limited: true }, at(START)), None, "nothing has changed");
    assert_eq!(guard.set_host(Host::default(), at(START)).unwrap().change, Change::CpuFree);
    assert!(guard.weights(prefix(HERE), Class::default(), at(START)).probability(BBR) > 0.5);
}

#[test]
fn a_lossy_connection_is_not_moved_to_bbr_while_the_host_is_short_of_cpu() {
    let mut guard =
        guarded(AnyPolicy::Bpftune(Bpftune::new(arms(), BpftuneSettings::default())), GuardSettings::default());
    let loss = Loss { prefix: prefix(HERE), arm: CUBIC, segments_out: Packets(100), retransmits: Packets(10) };
    assert_eq!(guard.on_loss(&loss, at(START)), Some(BBR));
    guard.set_host(Host { is_cpu_limited: true }, at(START));
    assert_eq!(guard.on_loss(&loss, at(START)), None);
}

#[test]
fn a_default_that_needs_a_full_cpu_is_replaced_while_the_host_is_short_of_cpu() {
    let arms = Arms::named(&["bbr", "cubic"], "bbr").unwrap();
    let policy = AnyPolicy::Static(Static::only(arms.clone(), arms.default()));
    let mut guard = Guard::new(arms, policy, Objective::default(), GuardSettings::default());
    guard.set_host(Host { is_cpu_limited: true }, at(START));
    assert_eq!(guard.weights(prefix(HERE), Class::default(), at(START)).probabilities(), [0.0, 1.0]);
}

#[test]
fn outcomes_of_bbr_while_short_of_cpu_do_not_count_for_the_path() {
    let mut guard = guarded(AnyPolicy::Bayes(bayes()), GuardSettings::default());
    let before = guard.weights(prefix(HERE), Class::default(), at(START));
    for _ in 0..40 {
        let starved = Outcome { is_cpu_limited: true, ..outcome(prefix(HERE), BBR, 60_000.0) };
        guard.observe(&starved, at(START));
    }
    assert_eq!(guard.weights(prefix(HERE), Class::default(), at(START)), before);
}

#[test]
fn a_new_preference_is_an_event_with_the_policys_reason() {
    let (here, mut luck) = (prefix(HERE), Luck::new(5));
    let mut guard = guarded(AnyPolicy::Bayes(bayes()), GuardSettings::default());
    let others = Weights::only(&arms(), CUBIC);
    let mut events = Vec::new();
    for second in 0..80 {
        let now = at(START + second);
        play(&mut guard, &[here], [500.0, 200.0], second..second + 1, &mut luck);
        let weights = guard.weights(here, Class::default(), now);
        // The connections were opened by the peer.
        events.extend(guard.note_preference(here, &weights, &others, now));
        assert_eq!(guard.note_preference(here, &others, &others, now), None, "without a connection there is no news");
    }
    let last = events.last().expect("a preference");
    assert!(matches!(&last.change, Change::Preferred { to, .. } if to == "bbr"), "{last}");
    assert!(last.reason.contains("times as good as cubic"), "{last}");
    assert_eq!(guard.preferred(here), Some(BBR));

    let greedy = |guard: &Guard, arm| guard.account(here).unwrap().arm(arm).unwrap().greedy;
    let before = [CUBIC, BBR].map(|arm| greedy(&guard, arm));
    assert!(before[1] > 0 && before[1] < guard.account(here).unwrap().arm(BBR).unwrap().connections, "{before:?}");
    for (arm, group) in [(BBR, Group::Treated), (CUBIC, Group::Treated), (BBR, Group::HeldOut), (BBR, Group::Untouched)]
    {
        guard.observe(&Outcome { group, ..outcome(here, arm, 300.0) }, at(START + 80));
    }
    assert_eq!(
        [CUBIC, BBR].map(|arm| greedy(&guard, arm)),
        [before[0], before[1] + 1],
        "what is drawn at random is not"
    );
}

#[test]
fn outcomes_are_accumulated_per_destination_and_arm() {
    let mut guard = always_bbr(GuardSettings::default());
    for (arm, ms, retransmits) in [(BBR, 100.0, 2), (BBR, 50.0, 0), (CUBIC, 400.0, 7)] {
        let closed = Outcome { retransmits: Packets(retransmits), ..outcome(prefix("192.0.2.0/24"), arm, ms) };
        guard.observe(&closed, at(START));
    }
    let (to, account) = guard.destinations().next().unwrap();
    let bbr = account.arm(BBR).unwrap();
    assert_eq!((to, bbr.connections, bbr.retransmits, bbr.segments), (prefix(HERE), 2, Packets(2), Packets(416)));
    assert_eq!(bbr.rtt_min, Some(Span::from_millis(20)));
    assert_eq!(bbr.delivery_rate_max, outcome(prefix(HERE), BBR, 50.0).delivery_rate);
    assert_eq!(account.arm(CUBIC).unwrap().connections, 1);
}
