//! Links built of queue disciplines match their plan, in a guest whose kernel has them.

use crate::network_support::{dump, experiment, experiment_with_a_far_flow, output_of_child, roles, uml};
use roles::Back;
use thalweg_lab::net::{LinkKind, Network, choose_link};
use thalweg_plan::plan::{Aggregation, Buffer, Capacity, Emulator, Experiment, Loss, Policer, Queue, Step, Traces};
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

fn fast() -> Experiment {
    let mut experiment = experiment();
    experiment.forward.delay_ns = Span::ZERO;
    experiment.reverse.delay_ns = Span::ZERO;
    experiment.forward.capacity = at_rate(Rate::from_mbps(1000));
    experiment.forward.buffer = Buffer::Packets { packets: Packets(10_000) };
    experiment
}

fn at_rate(rate: Rate) -> Capacity {
    Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: rate }] }
}

fn probability(ratio: f64) -> Probability {
    Probability::new(ratio).expect("a ratio")
}

/// Returns the output of a command in the router.
fn tc(network: &mut Network, line: &str) -> String {
    let words: Vec<_> = line.split(' ').map(Into::into).collect();
    output_of_child(network.spawn("router", &words, false).expect("it starts"))
}

/// Returns the number of packets that a queue discipline has dropped, from its statistics: `(dropped 12,`.
fn dropped(network: &mut Network, device: &str, handle: &str) -> u64 {
    let output = tc(network, &format!("tc -s qdisc show dev {device}"));
    let (_, of_it) =
        output.split_once(&format!(" {handle} ")).unwrap_or_else(|| panic!("no {handle} at {device}: {output}"));
    let (_, number) = of_it.split_once("(dropped ").expect("counters");
    number.split(',').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn shortest_us(back: &[Back]) -> u64 {
    back.iter().map(|packet| packet.back_us - packet.sent_us).min().expect("something came back")
}

/// Tolerance for the guest's lateness in a round trip, in milliseconds.
const GUEST_MS: u64 = 15;

#[test]
fn a_round_trip_takes_the_rtt_of_its_flow() {
    if !uml::is_in_guest("network_netem::a_round_trip_takes_the_rtt_of_its_flow") {
        return;
    }
    let mut network = Network::build(&experiment_with_a_far_flow(), LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    for (namespace, rtt_ms) in [("sender", 40), ("sender-2", 100)] {
        let back = roles::ping(&mut network, namespace, 20, 100, 10_000);
        assert_eq!(back.len(), 20, "{namespace}");
        let least_us = shortest_us(&back);
        assert!((rtt_ms * 1000..(rtt_ms + GUEST_MS) * 1000).contains(&least_us), "{namespace}: {least_us} us");
    }
    let qdiscs = tc(&mut network, "tc -s qdisc");
    // The transmission of 1500 bytes takes 0.6 ms; `tc` prints three digits.
    assert!(qdiscs.contains("limit 100000 delay 40.6ms") && qdiscs.contains("limit 100000 delay 101ms"), "{qdiscs}");
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
    network.close().expect("nothing is left");
}

#[test]
fn packets_are_lost_at_the_configured_ratio_in_both_directions_and_counted() {
    if !uml::is_in_guest("network_netem::packets_are_lost_at_the_configured_ratio_in_both_directions_and_counted") {
        return;
    }
    let mut experiment = fast();
    experiment.forward.loss = Loss::Bernoulli { ratio: probability(0.1) };
    // The bad state covers 1/6 of the packets, and half of these are lost: 1/12.
    experiment.reverse.loss = Loss::GilbertElliott {
        p: probability(0.1),
        r: probability(0.5),
        loss_bad: probability(0.5),
        loss_good: Probability::NEVER,
    };
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let sent = 3000;
    let back = roles::ping(&mut network, "sender", sent, 100, 200).len() as u64;
    let (there, here) = (dropped(&mut network, "f-loss", "1:"), dropped(&mut network, "r-loss", "1:"));
    assert_eq!(sent - back, there + here, "every packet that is missing was counted as lost");
    // The standard deviation is 16 of 300, and about 22 of 225 with bursts.
    assert!((220..380).contains(&there), "{there} of {sent} lost there");
    assert!((115..335).contains(&here), "{here} of {} lost here", sent - there);

    let watch = network.qdiscs();
    let forward = watch.forward.expect("a link there");
    assert_eq!(forward.loss, Some(("f-loss".to_owned(), "1:".to_owned())));
    assert_eq!(forward.queue, ("r0".to_owned(), "10:".to_owned()));
    assert_eq!(watch.reverse.and_then(|link| link.loss), Some(("r-loss".to_owned(), "1:".to_owned())));
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
}

#[test]
fn a_queue_holds_its_buffer_of_ip_bytes_and_empties_at_the_rate() {
    if !uml::is_in_guest("network_netem::a_queue_holds_its_buffer_of_ip_bytes_and_empties_at_the_rate") {
        return;
    }
    // 1500 bytes take 48 ms. The queue holds exactly 20 packets.
    let mut experiment = fast();
    experiment.forward.capacity = at_rate(Rate(250_000));
    experiment.forward.buffer = Buffer::Bytes { bytes: Bytes(20 * 1500) };
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let back = roles::ping(&mut network, "sender", 60, 1500, 0);
    // The first packet leaves immediately. If the guest pauses for 48 ms, another leaves before the last has arrived.
    assert!((21..=24).contains(&back.len()), "{} came through", back.len());
    assert_eq!(dropped(&mut network, "r0", "10:"), 60 - back.len() as u64);
    let gaps = back.len() as u64 - 1;
    let took_us = back[gaps as usize].back_us - back[0].back_us;
    let expected_us = gaps * 48_000;
    // 750 bytes of burst, plus the guest's lateness at both ends.
    let tolerance_us = 24_000 + 30_000;
    assert!(took_us.abs_diff(expected_us) < tolerance_us, "{gaps} packets took {took_us} us, not {expected_us}");
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    if !uml::is_in_guest("network_netem::jitter_keeps_the_order_and_reordering_does_not") {
        return;
    }
    let numbers = |back: &[Back]| back.iter().map(|packet| packet.number).collect::<Vec<_>>();
    let delays_us = |back: &[Back]| back.iter().map(|packet| packet.back_us - packet.sent_us).collect::<Vec<_>>();

    let mut experiment = fast();
    experiment.forward.jitter_ns = Span::from_millis(60);
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let back = roles::ping(&mut network, "sender", 100, 100, 5000);
    assert_eq!(numbers(&back), (0..100).collect::<Vec<_>>());
    let delays = delays_us(&back);
    let (least, most) = (delays.iter().min().expect("some"), delays.iter().max().expect("some"));
    // The largest of a hundred draws from 0 to 60 ms is above 45 ms except with a probability below 10^-12.
    assert!(*most > 45_000, "{most} us");
    assert!(*least < 40_000, "{least} us");
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
    network.close().expect("nothing is left");

    experiment.forward.jitter_ns = Span::ZERO;
    experiment.forward.reorder = probability(0.2);
    experiment.forward.reorder_delay_ns = Span::from_millis(40);
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let back = roles::ping(&mut network, "sender", 200, 100, 4000);
    let mut sorted = numbers(&back);
    assert!(!sorted.is_sorted(), "nothing overtook");
    sorted.sort_unstable();
    assert_eq!(sorted, (0..200).collect::<Vec<_>>(), "all came");
    // 40 are expected, with a standard deviation of 6, plus some more if the guest was late.
    let delayed = delays_us(&back).iter().filter(|delay| **delay >= 40_000).count();
    assert!((12..=75).contains(&delayed), "{delayed} of 200 were held back");
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
}

#[test]
fn duplicates_occur_at_the_configured_ratio_and_a_step_changes_the_rate() {
    if !uml::is_in_guest("network_netem::duplicates_occur_at_the_configured_ratio_and_a_step_changes_the_rate") {
        return;
    }
    let mut experiment = fast();
    experiment.forward.duplicate = probability(0.1);
    let second = Step { at_ns: Time::ZERO + Span::from_secs(1), rate_bps: Rate::from_mbps(7) };
    let Capacity::Steps { steps } = &mut experiment.forward.capacity else { panic!("steps") };
    steps.push(second);
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let back = roles::ping(&mut network, "sender", 2000, 100, 200).len();
    // 200 additional packets are expected, with a standard deviation of 13.
    assert!((2130..=2270).contains(&back), "{back} came of 2000");

    let changes = network.qdiscs().at;
    assert_eq!(changes.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [Span::from_secs(1); 2]);
    assert!(tc(&mut network, "tc class show dev r0").contains("rate 1Gbit ceil 1Gbit"));
    let delay = tc(&mut network, "tc qdisc show dev s1");
    assert!(delay.contains("delay 12us") || delay.contains("delay 11us"), "{delay}");
    for (_, words) in changes {
        tc(&mut network, &words.join(" "));
    }
    let classes = tc(&mut network, "tc class show dev r0");
    assert!(classes.contains("rate 7Mbit ceil 7Mbit burst 87"), "{classes}");
    // A full packet takes longer after the change.
    let delay = tc(&mut network, "tc qdisc show dev s1");
    assert!(delay.contains("delay 1.71ms"), "{delay}");
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
}

/// Returns queue disciplines, and the parts of the output of `tc` that show their parameters.
fn disciplines() -> Vec<(Queue, &'static [&'static str])> {
    let ms = Span::from_millis;
    let codel = Queue::Codel { target_ns: ms(6), interval_ns: ms(90), ecn: true, ce_threshold_ns: Some(ms(2)) };
    let fq_codel = Queue::FqCodel {
        flows: 64,
        quantum_bytes: Bytes(3000),
        memory_limit_bytes: Bytes(4 << 20),
        drop_batch: 8,
        target_ns: ms(6),
        interval_ns: ms(90),
        ecn: false,
        ce_threshold_ns: None,
    };
    let pie = Queue::Pie { target_ns: ms(20), tupdate_ns: ms(30), alpha: 3, beta: 25, ecn: true };
    let fq_pie = Queue::FqPie {
        flows: 64,
        quantum_bytes: Bytes(3000),
        memory_limit_bytes: Bytes(4 << 20),
        target_ns: ms(20),
        tupdate_ns: ms(30),
        alpha: 3,
        beta: 25,
        ecn: true,
        ecn_prob: 20,
    };
    let red = Queue::Red {
        min_bytes: Bytes(30_000),
        max_bytes: Bytes(90_000),
        avpkt_bytes: Bytes(1000),
        burst: 50,
        probability: probability(0.05),
        bandwidth_bps: Rate::from_mbps(10),
        ecn: true,
    };
    let fq = Queue::Fq {
        flow_limit: 77,
        quantum_bytes: Bytes(3000),
        initial_quantum_bytes: Bytes(9000),
        ce_threshold_ns: Some(ms(2)),
    };
    vec![
        (codel, &["codel 10: parent 1:1 limit 200p target 6ms ce_threshold 2ms interval 90ms ecn"]),
        (fq_codel, &["limit 200p flows 64 quantum 3000 target 6ms interval 90ms memory_limit 4Mb drop_batch 8"]),
        (pie, &["limit 200p target 20ms tupdate 30ms alpha 3 beta 25 ecn"]),
        (fq_pie, &["limit 200p flows 64 target 20ms tupdate 30ms alpha 3 beta 25", "ecn_prob 20"]),
        (red, &["limit 300000b min 30000b max 90000b ecn"]),
        (fq, &["limit 200p flow_limit 77p", "quantum 3000b initial_quantum 9000b", "ce_threshold 2ms"]),
        (Queue::Cake { rtt_ns: ms(40) }, &["bandwidth unlimited", "rtt 40ms", "memlimit 302800b"]),
    ]
}

#[test]
fn every_qdisc_is_created_with_the_parameters_of_the_plan() {
    if !uml::is_in_guest("network_netem::every_qdisc_is_created_with_the_parameters_of_the_plan") {
        return;
    }
    for (queue, shown) in disciplines() {
        let mut experiment = fast();
        experiment.forward.buffer = Buffer::Packets { packets: Packets(200) };
        experiment.forward.queue = queue;
        let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
        let output = tc(&mut network, "tc qdisc show dev r0").replace("Kb", "000b");
        for part in shown {
            assert!(output.contains(part), "{part}: {output}");
        }
        network.close().expect("nothing is left");
    }
}

#[test]
fn a_policer_counts_ip_packets_before_the_queue_and_behind_it() {
    if !uml::is_in_guest("network_netem::a_policer_counts_ip_packets_before_the_queue_and_behind_it") {
        return;
    }
    for after in [false, true] {
        let mut experiment = fast();
        // Exactly ten packets of 1500 bytes; with 14 more bytes each, only nine would pass.
        experiment.forward.policer = Some(Policer { rate_bps: Rate(8_000), burst_bytes: Bytes(15_000), after });
        let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
        let mut echo = roles::prepare(&mut network);
        let back = roles::ping(&mut network, "sender", 30, 1500, 0);
        assert_eq!(back.len(), 10, "after: {after}");
        assert_eq!(dropped(&mut network, "r0", "1:"), 20, "after: {after}");
        echo.kill().expect("it lives");
        echo.wait().expect("it ends");
        network.close().expect("nothing is left");
    }
}

#[test]
fn packets_leave_together_at_the_end_of_an_interval() {
    if !uml::is_in_guest("network_netem::packets_leave_together_at_the_end_of_an_interval") {
        return;
    }
    let mut experiment = fast();
    // Four packets of 1000 bytes leave at a time.
    experiment.forward.aggregation =
        Some(Aggregation { interval_ns: Span::from_millis(40), max_bytes: Some(Bytes(4000)) });
    let mut network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let mut echo = roles::prepare(&mut network);
    let back = roles::ping(&mut network, "sender", 12, 1000, 0);
    assert_eq!(back.len(), 12);
    let waited_ms: Vec<u64> = back.iter().map(|packet| (packet.back_us - packet.sent_us) / 1000).collect();
    for (number, waited) in waited_ms.iter().enumerate() {
        let interval = 40 * (number as u64 / 4 + 1);
        assert!((interval..interval + GUEST_MS).contains(waited), "packet {number}: {waited_ms:?}");
    }
    echo.kill().expect("it lives");
    echo.wait().expect("it ends");
}

#[test]
fn running_the_logged_commands_builds_the_same_qdiscs() {
    if !uml::is_in_guest("network_netem::running_the_logged_commands_builds_the_same_qdiscs") {
        return;
    }
    let mut experiment = experiment_with_a_far_flow();
    experiment.forward.loss = Loss::Bernoulli { ratio: probability(0.01) };
    experiment.forward.jitter_ns = Span::from_millis(3);
    experiment.reverse.capacity = at_rate(Rate::from_mbps(2));
    experiment.reverse.jitter_ns = Span::from_millis(1);
    let network = Network::build(&experiment, LinkKind::Netem).expect("a network");
    let commands = network.commands().to_owned();
    let live = dump::live(network);
    let replayed = dump::replayed(&commands, &["sender", "sender-2", "receiver", "router"]);
    assert_eq!(live, replayed);
    let without = commands.replace("loss random 1%", "loss random 2%");
    assert_ne!(live, dump::replayed(&without, &["sender", "sender-2", "receiver", "router"]));
}

#[test]
fn netem_is_used_on_request_and_rejected_if_the_kernel_lacks_it() {
    let mut experiment = experiment();
    experiment.engine.link = Emulator::Netem;
    if std::env::var_os("THALWEG_IN_GUEST").is_none() {
        match choose_link(&experiment, &Traces::default()) {
            Ok((link, _)) => assert_eq!(link, LinkKind::Netem),
            Err(error) => {
                assert_eq!(error.code, "no-qdisc");
                assert!(error.message.contains("netem"), "{error}");
                assert_eq!(Network::build(&experiment, LinkKind::Netem).expect_err("no netem").code, "no-qdisc");
            }
        }
    }
    if uml::is_in_guest("network_netem::netem_is_used_on_request_and_rejected_if_the_kernel_lacks_it") {
        let (link, why) = choose_link(&experiment, &Traces::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((link, why.as_str()), (LinkKind::Netem, "the scenario requests it"));
    }
}
