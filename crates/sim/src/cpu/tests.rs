use super::*;
use crate::Simulation;

const MS: u64 = 1_000_000;

/// Returns a CPU with slices of 2 ms every 5 ms; the first slice has lasted for 1 ms when the experiment begins.
fn cpu() -> Cpu {
    let mut cpu = Cpu::new(&PLAN, &mut rand_core::SeedableRng::seed_from_u64(1));
    cpu.slices.phase = Span(MS);
    cpu
}

#[test]
fn a_host_is_on_cpu_only_in_its_slices() {
    let mut cpu = cpu();
    let turns: Vec<u64> = (0..10).map(|ms| cpu.next_turn(Time(ms * MS)).0 / MS).collect();
    // Slices: until 1 ms, from 4 to 6 ms, from 9 to 11 ms.
    assert_eq!(turns, [0, 4, 4, 4, 4, 5, 9, 9, 9, 9]);
}

#[test]
fn work_that_does_not_fit_into_a_slice_continues_in_the_next() {
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
fn a_full_cpu_is_never_off_cpu() {
    let mut cpu = cpu();
    cpu.slices.period = cpu.slices.slice;
    cpu.slices.phase = Span::ZERO;
    cpu.work(Time(3 * MS), Span(5 * MS));
    assert_eq!((cpu.next_turn(Time(0)), cpu.next_turn(Time(9 * MS))), (Time(8 * MS), Time(9 * MS)));
}

#[test]
fn jittered_slices_differ_in_length_and_keep_the_share() {
    let plan = plan::Cpu { slice_jitter_ppm: 500_000, ..PLAN };
    let slices = Slices::new(&plan, &mut rand_core::SeedableRng::seed_from_u64(1));
    let lengths: Vec<u64> = (0..10_000).map(|number| slices.length(Time(number * 5 * MS)).0).collect();
    assert!(lengths.iter().all(|length| (MS..=3 * MS).contains(length)));
    let (shortest, longest) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!(*shortest < MS + MS / 100 && *longest > 3 * MS - MS / 100, "{shortest} to {longest}");
    let mean = lengths.iter().sum::<u64>() / 10_000;
    assert!(mean.abs_diff(2 * MS) < MS / 50, "{mean}");
    // Work of 7 ms takes as long as slices with a total of 7 ms.
    let end = slices.finish(slices.turn(Time(0)), Span(7 * MS));
    let on_cpu: u64 = (0..end.0).step_by(1000).filter(|at| slices.turn(Time(*at)) == Time(*at)).count() as u64;
    assert!((on_cpu * 1000).abs_diff(7 * MS) < 20_000, "{on_cpu} us");
}

const PLAN: plan::Cpu = plan::Cpu {
    slice_ns: Span(2 * MS),
    period_ns: Span(5 * MS),
    per_packet_ns: Span(1),
    per_ack_ns: Span(1),
    slice_jitter_ppm: 0,
    credit: None,
};

/// Returns a CPU with `credit_ms` of credit that earns a fifth of the time. Other load uses `load_ppm` of its time.
fn with_credit(credit_ms: u64, load_ppm: u32) -> Cpu {
    let credit =
        plan::Credit { initial_ns: Span(credit_ms * MS), max_ns: Span(20 * MS), baseline_ppm: 200_000, load_ppm };
    let mut cpu = Cpu::new(&plan::Cpu { credit: Some(credit), ..PLAN }, &mut rand_core::SeedableRng::seed_from_u64(1));
    cpu.slices.phase = Span::ZERO;
    cpu
}

fn turns(cpu: &mut Cpu, at_ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
    at_ms.into_iter().map(|at| cpu.next_turn(Time(at * MS)).0 / MS).collect()
}

#[test]
fn a_loaded_host_is_on_cpu_until_its_credit_is_exhausted_and_then_in_slices() {
    // 8 ms of credit at a net cost of 0.8 per ms last for 10 ms; then 2 ms out of every 5 ms.
    let mut cpu = with_credit(8, 1_000_000);
    assert_eq!(turns(&mut cpu, [0, 4, 9]), [0, 4, 9]);
    assert_eq!(turns(&mut cpu, 10..18), [10, 11, 15, 15, 15, 15, 16, 20]);
    // A slice uses 2 ms and a period earns 1 ms: slices leave neither credit nor debt over any duration.
    assert_eq!(turns(&mut cpu, [1002, 1003]), [1005, 1005]);
}

#[test]
fn packets_spend_credit_and_an_idle_host_earns_it_back() {
    let mut cpu = with_credit(4, 0);
    cpu.work(Time(0), Span(5 * MS));
    // 4 ms of credit less 5 ms of work: the balance is used up immediately, and the work is still completed.
    assert_eq!(turns(&mut cpu, [1]), [5]);
    // The debt is 1 ms, and each period earns 1 ms. After three periods, at 15 ms, the balance covers a slice of 2 ms.
    assert_eq!(turns(&mut cpu, [8, 12, 14]), [10, 15, 15]);
    assert_eq!(turns(&mut cpu, [17, 18, 19]), [17, 18, 19]);
}

#[test]
fn credit_does_not_exceed_its_maximum() {
    let mut cpu = with_credit(0, 0);
    // The balance is 20 ms, the maximum, and not the 200 ms earned. With the credit earned in the meantime it lasts for
    // 24 ms of work. The next 1 ms of work uses it up and starts the first slice, of 2 ms.
    let mut now = cpu.next_turn(Time(1000 * MS));
    while cpu.next_turn(now) == now {
        cpu.work(now, Span(MS));
        now += Span(MS);
    }
    assert_eq!((now.0 / MS, cpu.next_turn(now).0 / MS), (1026, 1029));
}

/// Ten segments over a path with an RTT of 10 ms and no other effects, from a host with slices of 10 ms every 20 ms, in
/// which a packet takes 1 ms and an acknowledgement 2 ms. Calculated times, in ms:
///
/// ```text
///   0 SYN is sent               10 SYN-ACK arrives: off CPU
///  20 SYN-ACK handled           22 third packet of the handshake is sent
///  23 .. 29 seven segments      30 off CPU; their ACKs arrive from 33 to 39
///  40 .. 42 the other three     their ACKs arrive from 50 to 52: off CPU
///  43, 45, 47, 49 four ACKs     the last takes its second millisecond from 60 on
///  61, 63, 65, 67, 69 five      the last takes its second millisecond from 80 on
///  81 the last one             83 the transfer is complete
/// ```
#[test]
fn a_transfer_of_a_host_that_is_off_cpu_half_of_the_time_takes_the_calculated_time() {
    let mut experiment: plan::Experiment =
        serde_json::from_str(include_str!("../../tests/data/one-cubic-flow.json")).unwrap();
    experiment.forward.capacity = plan::Capacity::Unlimited;
    experiment.reverse.capacity = plan::Capacity::Unlimited;
    (experiment.forward.delay_ns, experiment.reverse.delay_ns) = (Span(5 * MS), Span(5 * MS));
    experiment.start_jitter_ns = Span::ZERO;
    experiment.flows[0].load = plan::Load::Sizes { sizes_bytes: vec![thalweg_units::Bytes(14_480)] };
    let fct_us = |experiment: &plan::Experiment| {
        let mut simulation = Simulation::new(experiment, &thalweg_plan::plan::Traces::default()).unwrap();
        simulation.cpus.iter_mut().flatten().for_each(|cpu| cpu.slices.phase = Span::ZERO);
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
        slice_jitter_ppm: 0,
        credit: None,
    });
    assert_eq!(fct_us(&experiment), 83_000);
}

/// Segments over a path with an RTT of 8 ms, from a host with slices of 10 ms every 40 ms; packets take no time. With
/// two CPUs, the slices of the second one begin 10 ms after those of the first. Calculated times, in ms:
///
/// ```text
///                                   one CPU   two CPUs
///  SYN is sent                            0          0
///  SYN-ACK arrives at 8, is handled       8         10, on the second
///  the application writes                 8         40, on the first
///  ten segments are sent                  8         40
///  their ACKs arrive                     16         48
///  and are handled                       40         50, on the second
///  the other ten are sent                40         50, on the second, from the send buffer
///  their ACKs arrive and are handled     48         58
/// ```
#[test]
fn acks_release_data_while_the_application_is_off_cpu() {
    let mut experiment: plan::Experiment =
        serde_json::from_str(include_str!("../../tests/data/one-cubic-flow.json")).unwrap();
    experiment.forward.capacity = plan::Capacity::Unlimited;
    experiment.reverse.capacity = plan::Capacity::Unlimited;
    (experiment.forward.delay_ns, experiment.reverse.delay_ns) = (Span(4 * MS), Span(4 * MS));
    experiment.start_jitter_ns = Span::ZERO;
    experiment.flows[0].load = plan::Load::Sizes { sizes_bytes: vec![thalweg_units::Bytes(28_960)] };
    let fct_us = |second_cpu: bool| {
        let mut experiment = experiment.clone();
        let host = experiment.hosts.get_mut("sender").unwrap();
        let none = Span::ZERO;
        let (slice_ns, period_ns) = (Span(10 * MS), Span(40 * MS));
        host.cpu = Some(plan::Cpu { slice_ns, period_ns, per_packet_ns: none, per_ack_ns: none, ..PLAN });
        host.second_cpu = second_cpu;
        let mut simulation = Simulation::new(&experiment, &thalweg_plan::plan::Traces::default()).unwrap();
        for cpus in &mut simulation.cpus {
            for (cpu, phase_ms) in cpus.iter_mut().zip([0, 30]) {
                cpu.slices.phase = Span(phase_ms * MS);
            }
        }
        let mut rows = thalweg_trace::Memory::default();
        while simulation.step(&mut rows) {}
        simulation.finish(&mut rows);
        assert!(rows.flows[0].completed && rows.flows[0].segments == 20);
        rows.flows[0].fct_us.unwrap()
    };
    assert_eq!((fct_us(false), fct_us(true)), (48_000, 58_000));
}
