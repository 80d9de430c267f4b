//! Tests invariants of random experiments.

use crate::support;
use proptest::prelude::*;
use std::collections::BTreeMap;
use thalweg_plan::plan::{
    App, Background, Buffer, Capacity, Cpu, Credit, Experiment, Flow, Load, Loss, Queue, Repeat, Step, Traces,
};
use thalweg_sim::Simulation;
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

fn probability(most: f64) -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), 0.0..most].prop_map(|p| Probability::new(p).expect("below 1"))
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        probability(0.2).prop_map(|ratio| Loss::Bernoulli { ratio }),
        (probability(0.05), 0.1..1.0, probability(0.01)).prop_map(|(p, r, loss_good)| Loss::GilbertElliott {
            p,
            r: Probability::new(r).expect("below 1"),
            loss_bad: Probability::new(0.8).expect("below 1"),
            loss_good,
        }),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        prop::collection::vec(1u64..50, 1..4).prop_map(|rates| Capacity::Steps {
            steps: (0..)
                .zip(rates)
                .map(|(index, mbps)| Step { at_ns: Time(index * 400_000_000), rate_bps: Rate::from_mbps(mbps) })
                .collect(),
        }),
        Just(Capacity::Trace { trace: "t".to_owned() }),
    ]
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (1_500u64..200_000).prop_map(|bytes| Buffer::Bytes { bytes: Bytes(bytes) }),
        (1u64..200).prop_map(|packets| Buffer::Packets { packets: Packets(packets) }),
    ]
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Unlimited),
        prop::collection::vec(1u64..300_000, 1..3)
            .prop_map(|sizes| Load::Sizes { sizes_bytes: sizes.into_iter().map(Bytes).collect() }),
        (1u64..50_000, 0u64..200, prop::option::of(1u32..9)).prop_map(|(size, think, count)| Load::Requests {
            size_bytes: Bytes(size),
            think_ns: Span::from_millis(think),
            count
        }),
        app().prop_map(|app| Load::App { app }),
    ]
}

fn app() -> impl Strategy<Value = App> {
    let sizes = || prop::collection::vec(1u64..50_000, 1..3).prop_map(|sizes| sizes.into_iter().map(Bytes).collect());
    prop_oneof![
        (1u64..20_000, 1u64..100).prop_map(|(size, interval)| App::Call {
            frame_bytes: Bytes(size),
            interval_ns: Span::from_millis(interval),
            freeze_ns: Span::from_millis(150),
        }),
        (1u64..100, sizes(), 1u32..4).prop_map(|(gap, sizes_bytes, connections)| App::Rpc {
            mean_gap_ns: Span::from_millis(gap),
            sizes_bytes,
            connections,
        }),
        (1u32..20, sizes(), 1u32..4).prop_map(|(objects, sizes_bytes, connections)| App::Web {
            objects,
            depth: 1 + objects / 5,
            sizes_bytes,
            connections,
            pages: 2,
            think_ns: Span::from_millis(20),
        }),
    ]
}

fn queue() -> impl Strategy<Value = Queue> {
    let codel = Queue::Codel {
        target_ns: Span::from_millis(5),
        interval_ns: Span::from_millis(20),
        ecn: true,
        ce_threshold_ns: Some(Span::from_millis(2)),
    };
    prop_oneof![Just(Queue::Fifo {}), Just(codel)]
}

fn repeat() -> impl Strategy<Value = Repeat> {
    prop_oneof![
        Just(Repeat::Once),
        (0u64..300, prop::option::of(1u32..9)).prop_map(|(gap, count)| Repeat::Gap {
            gap_ns: Span::from_millis(gap),
            until: None,
            count
        }),
        (20u64..300, prop::option::of(1u32..9)).prop_map(|(gap, count)| Repeat::Poisson {
            mean_gap_ns: Span::from_millis(gap),
            until: None,
            count
        }),
    ]
}

prop_compose! {
    fn flow(name: &'static str)(
        cc in prop::sample::select(vec!["reno", "cubic", "bbr", "dctcp", "prague"]),
        start in 0u64..500,
        stop in prop::option::of(200u64..1_500),
        load in load(),
        repeat in repeat(),
        count in 1u32..4,
        extra_rtt in prop_oneof![Just(0u64), 0u64..50],
        (paced, ecn, up) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) -> Flow {
        Flow {
            name: name.to_owned(),
            cc: cc.to_owned(),
            cc_params: BTreeMap::new(),
            cc_file: None,
            paced,
            ecn,
            start_ns: Time(start * 1_000_000),
            stop_ns: stop.map(|ms| Time(ms * 1_000_000)),
            load,
            repeat,
            count,
            extra_rtt_ns: Span::from_millis(extra_rtt),
            host: "sender".to_owned(),
            up,
            program: None,
        }
    }
}

prop_compose! {
    fn credit()(initial_ms in 0u64..500, baseline_ppm in 0u32..1_000_000, load_ppm in 0u32..=1_000_000) -> Credit {
        Credit { initial_ns: Span::from_millis(initial_ms), max_ns: Span::from_secs(1), baseline_ppm, load_ppm }
    }
}

prop_compose! {
    fn cpu()(
        slice_us in 10u64..30_000,
        times in 1u64..20,
        packet_us in 0u64..300,
        ack_us in 0u64..300,
        slice_jitter_ppm in prop_oneof![Just(0u32), 0u32..1_000_000],
        credit in prop::option::of(credit()),
    ) -> Cpu {
        Cpu {
            slice_ns: Span::from_micros(slice_us),
            period_ns: Span::from_micros(slice_us * times),
            per_packet_ns: Span::from_micros(packet_us),
            per_ack_ns: Span::from_micros(ack_us),
            slice_jitter_ppm,
            credit,
        }
    }
}

prop_compose! {
    fn experiment()(
        seed in any::<u64>(),
        (capacity, buffer, forward_loss) in (capacity(), buffer(), loss()),
        (reverse_capacity, reverse_buffer, reverse_loss) in (capacity(), buffer(), loss()),
        (duplicate, reorder, jitter, host_jitter) in (probability(0.05), probability(0.05), 0u64..5_000, 0u64..200),
        rtt in 1u64..100,
        (first, second) in (flow("first"), flow("second")),
        (udp, udp_up) in (prop::option::of(1u64..20), any::<bool>()),
        (start_jitter, cpu, second_cpu) in (0u64..50, prop::option::of(cpu()), any::<bool>()),
        (offloads, path_offloads, coalescing) in (any::<bool>(), any::<bool>(), prop_oneof![Just(0u64), 1u64..2_000]),
        queue in queue(),
    ) -> Experiment {
        let mut experiment = support::experiment();
        experiment.seed = seed;
        experiment.duration_ns = Some(Span::from_millis(2_000));
        experiment.start_jitter_ns = Span::from_millis(start_jitter);
        experiment.rtt_ns = Span::from_millis(rtt);
        for (link, loss) in [(&mut experiment.forward, forward_loss), (&mut experiment.reverse, reverse_loss)] {
            link.delay_ns = Span::from_millis(rtt).scale(1, 2);
            link.loss = loss;
            link.duplicate = duplicate;
            link.reorder = reorder;
            link.reorder_delay_ns = Span::from_millis(rtt).scale(1, 8);
            link.jitter_ns = Span::from_micros(jitter);
            link.offloads = path_offloads;
        }
        experiment.forward.capacity = capacity;
        experiment.forward.buffer = buffer;
        experiment.forward.queue = queue;
        experiment.reverse.capacity = reverse_capacity;
        experiment.reverse.buffer = reverse_buffer;
        for host in experiment.hosts.values_mut() {
            host.delay_jitter_ns = Span::from_micros(host_jitter);
            host.offloads = offloads;
            host.interrupt_coalescing_ns = Span::from_micros(coalescing);
        }
        let sender = experiment.hosts.get_mut("sender").expect("there is one");
        sender.cpu = cpu;
        sender.second_cpu = second_cpu && cpu.is_none_or(|cpu| cpu.credit.is_none());
        experiment.flows = vec![first, second];
        experiment.background = udp
            .map(|mbps| Background { rate_bps: Rate::from_mbps(mbps), start_ns: Time(300_000_000), stop_ns: None, up: udp_up })
            .into_iter()
            .collect();
        experiment
    }
}

fn traces() -> Traces {
    let opportunities = BTreeMap::from([("t".to_owned(), vec![1, 2, 2, 5, 9, 9, 9, 12])]);
    Traces { opportunities, ..Traces::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_accounted_for_at_every_step(experiment in experiment()) {
        let mut simulation = Simulation::new(&experiment, &traces()).expect("the experiment is sound");
        let mut rows = Memory::default();
        while simulation.step(&mut rows) {
            let ledger = simulation.ledger();
            prop_assert!(ledger.balances(), "{ledger:?}");
        }
        simulation.finish(&mut rows);
        for row in &rows.flows {
            prop_assert!(row.retransmits <= Some(row.segments));
            prop_assert_eq!(row.completed, row.fct_us.is_some());
            if let (true, Some(size)) = (row.completed, row.size_bytes) {
                prop_assert_eq!(row.acked_bytes, size);
            }
        }
    }

    #[test]
    fn the_same_experiment_yields_the_same_rows(experiment in experiment()) {
        let traces = traces();
        let first = support::run_with_traces(&experiment, &traces);
        prop_assert_eq!(first, support::run_with_traces(&experiment, &traces));
    }
}

#[test]
fn another_seed_yields_other_rows() {
    let mut experiment = support::experiment();
    experiment.forward.loss = support::loss(0.01);
    let first = support::run(&experiment);
    experiment.seed += 1;
    assert_ne!(first.flows, support::run(&experiment).flows);
}

#[test]
fn the_accounting_detects_an_injected_packet() {
    let mut side = thalweg_sim::Ledger::default();
    side.forward.delivered = 1;
    assert!(!side.balances());
}
