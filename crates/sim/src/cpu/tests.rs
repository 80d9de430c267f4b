use super::*;
use crate::Simulation;

const MS: u64 = 1_000_000;

/// 2 ms out of every 5 ms; the first slice has lasted for 1 ms when the experiment begins.
fn cpu() -> Cpu {
    let mut cpu = Cpu::new(
        &plan::Cpu { slice_ns: Span(2 * MS), period_ns: Span(5 * MS), per_packet_ns: Span(1), per_ack_ns: Span(1) },
        &mut rand_core::SeedableRng::seed_from_u64(1),
    );
    cpu.phase = Span(MS);
    cpu
}

#[test]
fn a_host_is_on_cpu_in_its_slices_alone() {
    let cpu = cpu();
    let turns: Vec<u64> = (0..10).map(|ms| cpu.next_turn(Time(ms * MS)).0 / MS).collect();
    // Slices: until 1 ms, from 4 to 6 ms, from 9 to 11 ms.
    assert_eq!(turns, [0, 4, 4, 4, 4, 5, 9, 9, 9, 9]);
}

#[test]
fn work_that_does_not_fit_into_a_slice_goes_on_in_the_next() {
    let free = |cost: u64| {
        let mut cpu = cpu();
        cpu.work(Time(4 * MS), Span(cost));
        cpu.next_turn(Time(4 * MS)).0
    };
    assert_eq!(free(0), 4 * MS);
    assert_eq!(free(MS / 2), 4 * MS + MS / 2);
    assert_eq!(free(2 * MS - 1), 6 * MS - 1);
    assert_eq!(free(2 * MS), 9 * MS, "the slice is used up");
    assert_eq!(free(2 * MS + 7), 9 * MS + 7);
    assert_eq!(free(6 * MS + 7), 19 * MS + 7);
}

#[test]
fn a_whole_cpu_is_never_away() {
    let mut cpu = cpu();
    cpu.period = cpu.slice;
    cpu.phase = Span::ZERO;
    cpu.work(Time(3 * MS), Span(5 * MS));
    assert_eq!((cpu.next_turn(Time(0)), cpu.next_turn(Time(9 * MS))), (Time(8 * MS), Time(9 * MS)));
}

/// Ten segments over a path of 10 ms that delays and does nothing else, from a host with slices of 10 ms every 20 ms in
/// which a packet takes 1 ms and an acknowledgement 2 ms. By hand, in ms:
///
/// ```text
///   0 SYN leaves                10 SYN-ACK comes: away
///  20 SYN-ACK handled           22 third packet of the handshake leaves
///  23 .. 29 seven segments      30 away; their ACKs come from 33 to 39
///  40 .. 42 the other three     their ACKs come from 50 to 52: away
///  43, 45, 47, 49 four ACKs     the last takes its second millisecond from 60 on
///  61, 63, 65, 67, 69 five      the last takes its second millisecond from 80 on
///  81 the last one             83 the transfer is complete
/// ```
#[test]
fn a_transfer_from_a_host_that_is_away_half_of_the_time_takes_as_long_as_by_hand() {
    let mut experiment: plan::Experiment =
        serde_json::from_str(include_str!("../../tests/data/one-cubic-flow.json")).unwrap();
    experiment.forward.capacity = plan::Capacity::Unlimited;
    experiment.reverse.capacity = plan::Capacity::Unlimited;
    (experiment.forward.delay_ns, experiment.reverse.delay_ns) = (Span(5 * MS), Span(5 * MS));
    experiment.start_jitter_ns = Span::ZERO;
    experiment.flows[0].load = plan::Load::Sizes { sizes_bytes: vec![thalweg_units::Bytes(14_480)] };
    let fct_us = |experiment: &plan::Experiment| {
        let mut simulation = Simulation::new(experiment, &thalweg_plan::plan::Traces::default()).unwrap();
        simulation.cpus.iter_mut().flatten().for_each(|cpu| cpu.phase = Span::ZERO);
        let mut rows = thalweg_trace::Memory::default();
        while simulation.step(&mut rows) {}
        simulation.finish(&mut rows);
        assert!(rows.flows[0].completed && rows.flows[0].segments == 10);
        rows.flows[0].fct_us.unwrap()
    };
    assert_eq!(fct_us(&experiment), 20_000, "two round trips with a CPU of its own");
    experiment.hosts.get_mut("sender").unwrap().cpu = Some(plan::Cpu {
        slice_ns: Span(10 * MS),
        period_ns: Span(20 * MS),
        per_packet_ns: Span(MS),
        per_ack_ns: Span(2 * MS),
    });
    assert_eq!(fct_us(&experiment), 83_000);
}
