//! Tests of the commands that are generated for an experiment.

use super::*;
use crate::net::places::places;
use thalweg_plan::plan::{Aggregation, Background, Capacity, Host, Loss, Profile, ProfilePoint, Step};
use thalweg_units::{Probability, Time};

fn experiment() -> Experiment {
    let text = include_str!("../../../../sim/tests/data/one-cubic-flow.json");
    serde_json::from_str(text).expect("an experiment")
}

fn everything() -> BTreeSet<String> {
    let fifos = ["netem", "htb", "tbf", "bfifo", "pfifo"];
    let others = ["codel", "fq_codel", "pie", "fq_pie", "red", "fq", "cake", "dualpi2", "police"];
    fifos.into_iter().chain(others).map(str::to_owned).collect()
}

fn probability(ratio: f64) -> Probability {
    Probability::new(ratio).expect("a ratio")
}

fn shaping(experiment: &Experiment, available: &BTreeSet<String>) -> Result<Shaping, Error> {
    let (senders, _) = places(experiment)?;
    Shaping::new(experiment, &traces(), &senders, available, TIMER_SLACK)
}

fn traces() -> Traces {
    let point = |at, mbps: Option<u64>, delay: Option<u64>, loss: Option<f64>| ProfilePoint {
        at_ns: Time::ZERO + Span::from_secs(at),
        rate_bps: mbps.map(Rate::from_mbps),
        delay_ns: delay.map(Span::from_millis),
        loss: loss.map(probability),
    };
    let points = vec![
        point(0, Some(20), Some(30), Some(0.0)),
        point(1, Some(5), None, None),
        point(2, None, Some(10), Some(0.02)),
    ];
    let profiles = [("moves".to_owned(), Profile { period_ns: None, points })].into();
    Traces { profiles, ..Traces::default() }
}

/// Returns the scheduled commands, each after its time in seconds.
fn later(experiment: &Experiment) -> Vec<String> {
    let shaping = shaping(experiment, &everything()).expect("netem can do it");
    let line = |(at, words): &(Span, Vec<String>)| format!("{} {}", at.0 / 1_000_000_000, words.join(" "));
    shaping.watch.at.iter().map(line).collect()
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
fn a_plain_path_has_its_queue_at_the_receiver_and_its_delay_on_the_reverse_path() {
    assert_eq!(
        script(&experiment()),
        "tc qdisc add dev r0 root handle 1: stab overhead -14 htb default 1\n\
         tc class add dev r0 parent 1: classid 1:1 htb rate 20000000bit burst 2500 cburst 2500 quantum 1500\n\
         tc qdisc add dev r0 parent 1:1 handle 10: bfifo limit 100000\n\
         tc qdisc add dev s1 root handle 1: netem limit 100000 delay 40600us"
    );
}

#[test]
fn every_sender_has_a_separate_delay() {
    let mut experiment = experiment();
    let mut far = experiment.flows[0].clone();
    far.extra_rtt_ns = Span::from_millis(60);
    experiment.flows.push(far);
    let script = script(&experiment);
    assert!(script.contains("dev s1 root handle 1: netem limit 100000 delay 40600us"), "{script}");
    assert!(script.contains("dev s2 root handle 1: netem limit 100000 delay 100600us"), "{script}");
}

#[test]
fn the_delay_holds_data_that_goes_up_at_the_rate_of_its_own_link() {
    let mut experiment = experiment();
    experiment.flows[0].up = true;
    experiment.reverse.capacity =
        Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::from_mbps(10_000) }] };
    let script = script(&experiment);
    // 10 Gbit/s for 40 ms is 50 MB, or about 960,000 packets of 52 bytes.
    let delay = script.lines().find(|line| line.contains(" delay 40")).expect("a delay");
    let limit: u64 = delay.split(' ').skip_while(|word| *word != "limit").nth(1).unwrap().parse().unwrap();
    assert!((1_900_000..2_100_000).contains(&limit), "{delay}");
}

#[test]
fn loss_is_applied_before_the_queue_and_jitter_behind_it() {
    let mut experiment = experiment();
    experiment.forward.loss = Loss::Bernoulli { ratio: probability(0.01) };
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
fn rate_steps_are_scheduled_commands() {
    let mut experiment = experiment();
    let step = |at, mbps| Step { at_ns: Time::ZERO + Span::from_secs(at), rate_bps: Rate::from_mbps(mbps) };
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, 20), step(3, 5)] };
    let shaping_plan = shaping(&experiment, &everything()).expect("netem can do it");
    let later: Vec<(Span, String)> = shaping_plan.watch.at.iter().map(|(at, words)| (*at, words.join(" "))).collect();
    // A packet of 1500 bytes takes 0.6 ms at first and 2.4 ms after the change.
    let changes = [
        "tc class change dev r0 parent 1: classid 1:1 htb rate 5000000bit burst 750 cburst 750 quantum 1500",
        "tc qdisc change dev s1 root handle 1: netem limit 100000 delay 42400us 0us rate 100gbit",
    ];
    assert_eq!(later, changes.map(|change| (Span::from_secs(3), change.to_owned())));
    let script = script(&experiment);
    assert!(script.ends_with("netem limit 100000 delay 40600us 0us rate 100gbit"), "{script}");
}

#[test]
fn with_exact_timers_each_packet_is_delayed_by_its_transmission_time() {
    let mut experiment = experiment();
    let step = |at, mbps| Step { at_ns: Time::ZERO + Span::from_secs(at), rate_bps: Rate::from_mbps(mbps) };
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, 20), step(3, 5)] };
    let (senders, _) = places(&experiment).expect("places");
    let shaping_plan =
        Shaping::new(&experiment, &traces(), &senders, &everything(), Span::ZERO).expect("netem can do it");
    let script = shaping_plan.lines.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join("\n");
    assert!(script.contains("dev f-queue parent 1: classid 1:1 htb rate 20000000bit burst 5 cburst 5 "), "{script}");
    assert!(script.contains("dev r0 root handle 1: netem limit 100000 rate 20000000bit -14"), "{script}");
    assert!(script.contains("dev s1 root handle 1: netem limit 100000 delay 40010us\""), "{script}");
    let later: Vec<String> = shaping_plan.watch.at.iter().map(|(_, words)| words.join(" ")).collect();
    assert!(later.contains(&"tc qdisc change dev r0 root handle 1: netem limit 100000 rate 5000000bit -14".to_owned()));
}

#[test]
fn a_reverse_rate_adds_the_transmission_time_of_an_ack() {
    let mut experiment = experiment();
    experiment.reverse.capacity =
        Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::from_mbps(1) }] };
    // The delay includes 1500 bytes at 20 Mbit/s forward and 52 bytes at 1 Mbit/s back.
    let script = script(&experiment);
    assert!(script.ends_with("dev s1 root handle 1: netem limit 100000 delay 41016us"), "{script}");
}

#[test]
fn a_buffer_smaller_than_a_packet_is_raised_to_one_and_logged() {
    let mut experiment = experiment();
    experiment.forward.buffer = Buffer::Bytes { bytes: Bytes(0) };
    let script = script(&experiment);
    assert!(script.contains("# the buffer is 0 bytes, but"), "{script}");
    assert!(script.contains("bfifo limit 1500"), "{script}");
}

#[test]
fn tbf_replaces_a_missing_htb() {
    let mut available = everything();
    available.remove("htb");
    let shaping_plan = shaping(&experiment(), &available).expect("tbf can do it");
    let Some(Line::Command(first)) = shaping_plan.lines.first() else { panic!("no command") };
    assert_eq!(
        first,
        "tc qdisc add dev r0 root handle 1: stab overhead -14 tbf rate 20000000bit burst 4000 limit 100000"
    );
}

#[test]
fn a_missing_kernel_feature_is_named_with_the_alternative() {
    let error = shaping(&experiment(), &BTreeSet::new()).expect_err("no netem");
    assert_eq!(error.code, "no-qdisc");
    assert!(error.message.contains("netem") && error.hint.contains("engine.link = \"relay\""), "{error}");
    let error = shaping(&experiment(), &["netem".to_owned()].into()).expect_err("no htb");
    assert!(error.message.contains("htb or tbf"), "{error}");
}

#[test]
fn background_that_goes_up_cannot_be_reordered_on_a_limited_link() {
    let error = refused(|e| {
        e.reverse.capacity = e.forward.capacity.clone();
        e.reverse.allow_reordering = true;
        let (start_ns, stop_ns) = (Time::ZERO, None);
        e.background.push(Background { rate_bps: Rate::from_mbps(1), start_ns, stop_ns, up: true });
    });
    assert!(error.message.contains("`path.reverse.allow_reordering`"), "{error}");
}

#[test]
fn a_feature_unsupported_by_netem_is_named_with_the_alternative() {
    let trace = refused(|e| e.forward.capacity = Capacity::Trace { trace: "lte".to_owned() });
    let stop = refused(|e| {
        e.forward.capacity = Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::ZERO }] };
    });
    let host = refused(|e| {
        e.hosts
            .insert("sender".to_owned(), Host { delay_jitter_ns: Span::from_micros(20), ..e.hosts["sender"].clone() });
    });
    let record = refused(|e| e.engine.record = true);
    let back = refused(|e| e.reverse.reorder = probability(0.1));
    let both = refused(|e| {
        e.forward.reorder = probability(0.1);
        e.forward.jitter_ns = Span::from_millis(1);
    });
    let twice = refused(|e| {
        e.reverse.duplicate = probability(0.1);
        e.reverse.loss = Loss::Bernoulli { ratio: probability(0.1) };
    });
    let aggregated = refused(|e| {
        e.reverse.aggregation = Some(Aggregation { interval_ns: Span::from_millis(4), max_bytes: None });
        e.flows.push(thalweg_plan::plan::Flow { extra_rtt_ns: Span::from_millis(60), ..e.flows[0].clone() });
    });
    let policed = refused(|e| {
        e.forward.policer = Some(Policer { after: true, ..policer() });
        e.forward.jitter_ns = Span::from_millis(1);
    });
    let missing = refused(|e| {
        e.forward.profile = Some("none".to_owned());
        e.forward.capacity = Capacity::Profile {};
    });
    let burst = refused(|e| {
        e.forward.queue = red();
        let Queue::Red { burst, .. } = &mut e.forward.queue else { panic!("red") };
        *burst = 2;
    });
    let thinned = refused(|e| e.reverse.ack_thinning = Some(4));
    let keys = [
        (aggregated, "`path.reverse.aggregation`"),
        (policed, "`path.policer.after`"),
        (missing, "`path.trace`"),
        (burst, "`path.queue.burst`"),
        (thinned, "`path.reverse.ack_thinning`"),
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

#[test]
fn remedies_in_virtual_time_are_those_of_its_kernel() {
    let cases = [("cake", "thalweg kernel build builds"), ("dualpi2", "--suite sid"), ("codel", "--engine sim")];
    for (name, remedy) in cases {
        let error = refused::lacks_discipline("the path needs the queue discipline", name, &format!("sch_{name}"));
        assert!(error.hint.contains("modprobe"), "{error}");
        let error = in_virtual_time(error);
        assert!(error.hint.contains(remedy) && !error.hint.contains("modprobe"), "{error}");
        assert_eq!(error.hint.contains("--engine sim"), name != "cake", "{error}");
    }
    let error = in_virtual_time(refused(|experiment| experiment.engine.record = true));
    assert!(!error.hint.contains("relay") && error.hint.contains("--engine sim"), "{error}");
}

fn policer() -> Policer {
    Policer { rate_bps: Rate::from_mbps(10), burst_bytes: Bytes(30_000), after: false }
}

fn red() -> Queue {
    Queue::Red {
        min_bytes: Bytes(8_000),
        max_bytes: Bytes(25_000),
        avpkt_bytes: Bytes(1_000),
        burst: 14,
        probability: probability(0.02),
        bandwidth_bps: Rate::from_mbps(20),
        ecn: true,
    }
}

/// Returns the child of htb for a discipline.
fn child(queue: Queue) -> String {
    let mut experiment = experiment();
    experiment.forward.buffer = Buffer::Packets { packets: Packets(200) };
    experiment.forward.queue = queue;
    let script = script(&experiment);
    let (_, rest) = script.split_once("dev r0 parent 1:1 handle 10: ").expect("a child");
    rest.lines().next().expect("a line").to_owned()
}

#[test]
fn codel_and_pie_are_children_of_htb_with_all_their_parameters() {
    let ms = Span::from_millis;
    let threshold = Some(Span::from_micros(1500));
    let codel = Queue::Codel { target_ns: ms(5), interval_ns: ms(100), ecn: false, ce_threshold_ns: threshold };
    assert_eq!(child(codel), "codel limit 200 target 5000us interval 100000us noecn ce_threshold 1500us");
    let fq_codel = Queue::FqCodel {
        flows: 1024,
        quantum_bytes: Bytes(1514),
        memory_limit_bytes: Bytes(32 << 20),
        drop_batch: 64,
        target_ns: ms(5),
        interval_ns: ms(100),
        ecn: true,
        ce_threshold_ns: None,
    };
    assert_eq!(
        child(fq_codel),
        "fq_codel limit 200 flows 1024 quantum 1514 target 5000us interval 100000us memory_limit 33554432 drop_batch \
         64 ecn"
    );
    let pie = Queue::Pie { target_ns: ms(15), tupdate_ns: ms(15), alpha: 2, beta: 20, ecn: true };
    assert_eq!(child(pie), "pie limit 200 target 15000us tupdate 15000us alpha 2 beta 20 ecn");
    let fq_pie = Queue::FqPie {
        flows: 1024,
        quantum_bytes: Bytes(1514),
        memory_limit_bytes: Bytes(32 << 20),
        target_ns: ms(15),
        tupdate_ns: ms(15),
        alpha: 2,
        beta: 20,
        ecn: false,
        ecn_prob: 10,
    };
    assert_eq!(
        child(fq_pie),
        "fq_pie limit 200 flows 1024 target 15000us tupdate 15000us alpha 2 beta 20 quantum 1514 memory_limit 33554432 \
         ecn_prob 10 noecn"
    );
}

#[test]
fn red_fq_dualpi2_and_cake_are_children_of_htb_with_all_their_parameters() {
    let ms = Span::from_millis;
    let red = child(red());
    assert_eq!(
        red,
        "red limit 300000 min 8000 max 25000 avpkt 1000 burst 14 probability 0.02 bandwidth 20000000bit ecn"
    );
    let fq = Queue::Fq {
        flow_limit: 100,
        quantum_bytes: Bytes(3028),
        initial_quantum_bytes: Bytes(15_140),
        ce_threshold_ns: None,
    };
    assert_eq!(child(fq), "fq limit 200 flow_limit 100 quantum 3028 initial_quantum 15140 nopacing");
    let dualpi2 = Queue::Dualpi2 {
        target_ns: ms(15),
        tupdate_ns: ms(16),
        alpha: 0.16,
        beta: 3.2,
        step_thresh_ns: ms(1),
        coupling_factor: 2,
        classic_protection: 10,
    };
    assert_eq!(
        child(dualpi2),
        "dualpi2 limit 200 target 15000us tupdate 16000us alpha 0.16 beta 3.2 step_thresh 1000us coupling_factor 2 \
         classic_protection 10"
    );
    assert_eq!(child(Queue::Cake { rtt_ns: ms(100) }), "cake unlimited memlimit 302800 rtt 100000us");
}

#[test]
fn a_qdisc_missing_in_the_kernel_is_named_with_how_to_install_it() {
    let lacking = |name: &str, change: &dyn Fn(&mut Experiment)| {
        let mut experiment = experiment();
        change(&mut experiment);
        let mut available = everything();
        available.remove(name);
        shaping(&experiment, &available).expect_err("the kernel lacks it")
    };
    let error = lacking("red", &|e| e.forward.queue = red());
    assert_eq!(error.code, "no-qdisc");
    assert!(error.message.contains("the queue discipline `red`") && error.hint.contains("modprobe sch_red"), "{error}");
    let cake = lacking("cake", &|e| e.forward.queue = Queue::Cake { rtt_ns: Span::from_millis(100) });
    assert!(cake.message.contains("`cake`") && !cake.hint.contains("relay"), "{cake}");
    let police = lacking("police", &|e| e.forward.policer = Some(policer()));
    assert!(police.message.contains("the policer needs the action `police`"), "{police}");
    assert!(police.hint.contains("modprobe act_police"), "{police}");
}

#[test]
fn a_policer_is_an_htb_filter_before_or_behind_the_queue() {
    let mut experiment = experiment();
    experiment.forward.policer = Some(policer());
    let filter = "tc filter add dev r0 parent 1: protocol all u32 match u32 0 0 action police rate 10000000bit burst \
                  30000 conform-exceed drop/ok";
    let before = script(&experiment);
    assert!(before.contains("dev r0 root handle 1: stab overhead -14 htb default 1\n"), "{before}");
    assert!(before.contains(filter), "{before}");
    let watched = shaping(&experiment, &everything()).expect("netem can do it").watch.forward.expect("a link");
    assert_eq!(watched.policer, Some(("r0".to_owned(), "1:".to_owned())));
    assert_eq!(watched.queue, ("r0".to_owned(), "10:".to_owned()));

    experiment.forward.policer = Some(Policer { after: true, ..policer() });
    let behind = script(&experiment);
    assert!(behind.contains("dev f-queue parent 1:1 handle 10: bfifo limit 100000"), "{behind}");
    assert!(behind.contains("dev r0 root handle 1: stab overhead -14 htb direct_qlen 100000"), "{behind}");
    assert!(behind.contains(filter), "{behind}");

    experiment.forward.policer = None;
    experiment.reverse.policer = Some(policer());
    let reverse = script(&experiment);
    assert!(reverse.contains("dev r-queue root handle 1: stab overhead -14 htb direct_qlen 100000"), "{reverse}");
}

#[test]
fn aggregation_is_a_netem_with_slots() {
    let mut experiment = experiment();
    let aggregation = Aggregation { interval_ns: Span::from_millis(4), max_bytes: Some(Bytes(65_535)) };
    experiment.forward.aggregation = Some(aggregation);
    experiment.reverse.aggregation = Some(Aggregation { max_bytes: None, ..aggregation });
    let plain = script(&experiment);
    let slots = "netem limit 100000 slot 4000us 4000us";
    let slots_back = "netem limit 1923076 slot 4000us 4000us";
    assert!(plain.contains(&format!("dev r0 root handle 1: stab overhead -14 {slots} bytes 65535\n")), "{plain}");
    assert!(plain.ends_with(&format!("dev s1 parent 1:1 handle 2: {slots_back}")), "{plain}");
    experiment.forward.jitter_ns = Span::from_millis(4);
    let behind_jitter = script(&experiment);
    assert!(behind_jitter.contains(&format!("dev r0 parent 1:1 handle 2: {slots} bytes 65535\n")), "{behind_jitter}");
}

#[test]
fn a_profile_changes_rate_delay_and_loss_at_the_scheduled_times() {
    let mut experiment = experiment();
    experiment.forward.profile = Some("moves".to_owned());
    experiment.forward.capacity = Capacity::Profile {};
    let script = script(&experiment);
    assert!(script.contains("dev f-loss root handle 1: netem limit 100000 loss random 0%"), "{script}");
    assert!(script.contains("htb rate 20000000bit "), "{script}");
    // The delay is 30 ms forward, 20 ms back, and 0.6 ms for a packet. The rate keeps packets in order when the delay
    // falls.
    assert!(script.ends_with("dev s1 root handle 1: netem limit 100000 delay 50600us 0us rate 100gbit"), "{script}");
    let watched = shaping(&experiment, &everything()).expect("netem can do it").watch.forward.expect("a link");
    let step = |at, mbps| Step { at_ns: Time::ZERO + Span::from_secs(at), rate_bps: Rate::from_mbps(mbps) };
    assert_eq!(watched.rates, [step(0, 20), step(1, 5)]);
    assert_eq!(
        later(&experiment),
        [
            "1 tc class change dev r0 parent 1: classid 1:1 htb rate 5000000bit burst 750 cburst 750 quantum 1500",
            "1 tc qdisc change dev s1 root handle 1: netem limit 100000 delay 52400us 0us rate 100gbit",
            "2 tc qdisc change dev f-loss root handle 1: netem limit 100000 loss random 2%",
            "2 tc qdisc change dev s1 root handle 1: netem limit 100000 delay 32400us 0us rate 100gbit",
        ]
    );
}

#[test]
fn steps_of_delay_and_loss_do_not_change_the_rate() {
    let mut experiment = experiment();
    experiment.forward.profile = Some("moves".to_owned());
    let changes = later(&experiment);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[1].ends_with("delay 30600us 0us rate 100gbit"), "{changes:?}");
}
