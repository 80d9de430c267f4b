//! Which commands follow from which experiment. That the kernel takes them, and what they do, is in tests/network_netem.rs.

use super::*;
use crate::net::places::places;
use thalweg_plan::plan::{Host, Loss};
use thalweg_units::{Chance, Time};

fn experiment() -> Experiment {
    let text = include_str!("../../../../sim/tests/data/one-cubic-flow.json");
    serde_json::from_str(text).expect("an experiment")
}

fn everything() -> BTreeSet<String> {
    ["netem", "htb", "tbf", "bfifo", "pfifo"].map(str::to_owned).into()
}

fn chance(ratio: f64) -> Chance {
    Chance::new(ratio).expect("a ratio")
}

fn shaping(experiment: &Experiment, available: &BTreeSet<String>) -> Result<Shaping, Error> {
    let (senders, _) = places(experiment)?;
    Shaping::new(experiment, &senders, available, TIMER_SLACK)
}

fn script(experiment: &Experiment) -> String {
    let shaping = shaping(experiment, &everything()).expect("netem can do it");
    let line = |line: &Line| match line {
        Line::Command(text) => text.clone(),
        Line::Device(name) => format!("device {name}"),
        Line::Note(text) => format!("# {text}"),
    };
    shaping.lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn refused(change: impl Fn(&mut Experiment)) -> Error {
    let mut experiment = experiment();
    change(&mut experiment);
    shaping(&experiment, &everything()).expect_err("netem cannot do it")
}

#[test]
fn a_plain_path_is_a_queue_at_the_receiver_and_all_the_delay_on_the_way_back() {
    assert_eq!(
        script(&experiment()),
        "tc qdisc add dev r0 root handle 1: stab overhead -14 htb default 1\n\
         tc class add dev r0 parent 1: classid 1:1 htb rate 20000000bit burst 2500 cburst 2500 quantum 1500\n\
         tc qdisc add dev r0 parent 1:1 handle 10: bfifo limit 100000\n\
         tc qdisc add dev s1 root handle 1: netem limit 100000 delay 40600us"
    );
}

#[test]
fn every_sender_gets_its_own_delay() {
    let mut experiment = experiment();
    let mut far = experiment.flows[0].clone();
    far.extra_rtt_ns = Span::from_millis(60);
    experiment.flows.push(far);
    let script = script(&experiment);
    assert!(script.contains("dev s1 root handle 1: netem limit 100000 delay 40600us"), "{script}");
    assert!(script.contains("dev s2 root handle 1: netem limit 100000 delay 100600us"), "{script}");
}

#[test]
fn loss_comes_before_the_queue_and_jitter_behind_it() {
    let mut experiment = experiment();
    experiment.forward.loss = Loss::Bernoulli { ratio: chance(0.01) };
    experiment.forward.jitter_ns = Span::from_millis(4);
    let script = script(&experiment);
    assert!(script.contains("dev f-loss root handle 1: netem limit 100000 loss random 1%"), "{script}");
    assert!(
        script.contains(
            "filter add dev s1 ingress protocol all u32 match u32 0 0 action mirred egress redirect dev f-loss"
        )
    );
    assert!(
        script.contains(
            "filter add dev r0 egress protocol all u32 match u32 0 0 action mirred egress redirect dev f-queue"
        )
    );
    assert!(script.contains("dev f-queue parent 1:1 handle 10: bfifo limit 100000"), "{script}");
    assert!(script.contains("dev r0 root handle 1: netem limit 100000 delay 2000us 2000us rate 100gbit"), "{script}");
}

#[test]
fn steps_change_the_rate_later() {
    let mut experiment = experiment();
    let step = |at, mbps| Step { at_ns: Time::ZERO + Span::from_secs(at), rate_bps: Rate::from_mbps(mbps) };
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, 20), step(3, 5)] };
    let made = shaping(&experiment, &everything()).expect("netem can do it");
    let later: Vec<(Span, String)> = made.watch.at.iter().map(|(at, words)| (*at, words.join(" "))).collect();
    // A packet of 1500 bytes takes 0.6 ms at first and 2.4 ms then.
    let changes = [
        "tc class change dev r0 parent 1: classid 1:1 htb rate 5000000bit burst 750 cburst 750 quantum 1500",
        "tc qdisc change dev s1 root handle 1: netem limit 100000 delay 42400us 0us rate 100gbit",
    ];
    assert_eq!(later, changes.map(|change| (Span::from_secs(3), change.to_owned())));
    let script = script(&experiment);
    assert!(script.ends_with("netem limit 100000 delay 40600us 0us rate 100gbit"), "{script}");
}

#[test]
fn where_timers_are_exact_each_packet_is_held_for_its_own_transmission() {
    let mut experiment = experiment();
    let step = |at, mbps| Step { at_ns: Time::ZERO + Span::from_secs(at), rate_bps: Rate::from_mbps(mbps) };
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, 20), step(3, 5)] };
    let (senders, _) = places(&experiment).expect("places");
    let made = Shaping::new(&experiment, &senders, &everything(), Span::ZERO).expect("netem can do it");
    let script = made.lines.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join("\n");
    assert!(script.contains("dev f-queue parent 1: classid 1:1 htb rate 20000000bit burst 1 cburst 1 "), "{script}");
    assert!(script.contains("dev r0 root handle 1: netem limit 100000 rate 20000000bit -14"), "{script}");
    assert!(script.contains("dev s1 root handle 1: netem limit 100000 delay 40010us\""), "{script}");
    let later: Vec<String> = made.watch.at.iter().map(|(_, words)| words.join(" ")).collect();
    assert!(later.contains(&"tc qdisc change dev r0 root handle 1: netem limit 100000 rate 5000000bit -14".to_owned()));
}

#[test]
fn a_rate_on_the_way_back_adds_the_transmission_of_an_ack() {
    let mut experiment = experiment();
    experiment.reverse.capacity =
        Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::from_mbps(1) }] };
    // 1500 bytes at 20 Mbit/s there, 52 bytes at 1 Mbit/s back.
    let script = script(&experiment);
    assert!(script.ends_with("dev s1 root handle 1: netem limit 100000 delay 41016us"), "{script}");
}

#[test]
fn a_buffer_smaller_than_a_packet_is_made_one_and_the_log_says_so() {
    let mut experiment = experiment();
    experiment.forward.buffer = Buffer::Bytes { bytes: Bytes(0) };
    let script = script(&experiment);
    assert!(script.contains("# the buffer is 0 bytes, but"), "{script}");
    assert!(script.contains("bfifo limit 1500"), "{script}");
}

#[test]
fn without_htb_there_is_tbf() {
    let mut available = everything();
    available.remove("htb");
    let made = shaping(&experiment(), &available).expect("tbf can do it");
    let Some(Line::Command(first)) = made.lines.first() else { panic!("no command") };
    assert_eq!(
        first,
        "tc qdisc add dev r0 root handle 1: stab overhead -14 tbf rate 20000000bit burst 4000 limit 100000"
    );
}

#[test]
fn what_the_kernel_lacks_is_named_with_the_way_out() {
    let error = shaping(&experiment(), &BTreeSet::new()).expect_err("no netem");
    assert_eq!(error.code, "no-qdisc");
    assert!(error.message.contains("netem") && error.hint.contains("engine.link = \"relay\""), "{error}");
    let error = shaping(&experiment(), &["netem".to_owned()].into()).expect_err("no htb");
    assert!(error.message.contains("htb or tbf"), "{error}");
}

#[test]
fn what_netem_cannot_do_is_named_with_the_way_out() {
    let trace = refused(|e| e.forward.capacity = Capacity::Trace { trace: "lte".to_owned() });
    let stop = refused(|e| {
        e.forward.capacity = Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::ZERO }] };
    });
    let host = refused(|e| {
        e.hosts
            .insert("sender".to_owned(), Host { delay_jitter_ns: Span::from_micros(20), ..e.hosts["sender"].clone() });
    });
    let record = refused(|e| e.engine.record = true);
    let back = refused(|e| e.reverse.reorder = chance(0.1));
    let both = refused(|e| {
        e.forward.reorder = chance(0.1);
        e.forward.jitter_ns = Span::from_millis(1);
    });
    let twice = refused(|e| {
        e.reverse.duplicate = chance(0.1);
        e.reverse.loss = Loss::Bernoulli { ratio: chance(0.1) };
    });
    let keys = [
        (trace, "`path.trace`"),
        (stop, "`path.steps`"),
        (host, "`host.sender.delay_jitter`"),
        (record, "`engine.record`"),
        (back, "`path.reverse.reorder`"),
        (both, "`path.reorder`"),
        (twice, "`path.reverse.duplicate`"),
    ];
    for (error, key) in keys {
        assert_eq!(error.code, "not-on-netem");
        assert!(error.message.starts_with(key), "{key}: {error}");
        assert!(error.hint.contains("engine.link = \"relay\""), "{error}");
    }
}
