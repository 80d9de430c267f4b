//! Tests of hosts that share a CPU.
//!
//! Elmenhorst and Aschenbruck, "2BRobust" (2026): on 100 Mbit/s with 10 ms, a BBR sender that is on CPU for 10 ms out
//! of 20 ms falls towards 10 Mbit/s. CUBIC, which sends a complete window when it is on CPU, does not. CUBIC with `fq`,
//! which spreads its packets, also slows down.

use crate::support::{bulk, run};
use thalweg_plan::plan::{Cpu, Credit, Experiment};
use thalweg_units::{Rate, Span};

const RATE: Rate = Rate::from_mbps(100);
const RTT: Span = Span::from_millis(10);

fn on_a_share(cc: &str, slice: Span, period: Span) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 2.0, &[cc], 8);
    let cost = Span::from_micros(1);
    let cpu = Cpu {
        slice_ns: slice,
        period_ns: period,
        per_packet_ns: cost,
        per_ack_ns: cost,
        slice_jitter_ppm: 0,
        credit: None,
    };
    experiment.hosts.get_mut("sender").expect("there is one").cpu = Some(cpu);
    experiment
}

fn mbps(experiment: &Experiment) -> f64 {
    run(experiment).flows[0].goodput_bps / 1e6
}

#[test]
fn bbr_collapses_on_half_a_cpu_and_cubic_does_not() {
    let (slice, period) = (Span::from_millis(10), Span::from_millis(20));
    let (cubic, bbr) = (mbps(&on_a_share("cubic", slice, period)), mbps(&on_a_share("bbr", slice, period)));
    assert!(cubic > 90.0, "cubic gets {cubic} Mbit/s");
    assert!(bbr < cubic / 3.0, "bbr gets {bbr} Mbit/s, cubic {cubic}");
    let full_cpu = mbps(&on_a_share("bbr", slice, slice));
    assert!(full_cpu > 90.0, "bbr on a whole CPU gets {full_cpu} Mbit/s");
}

#[test]
fn cubic_with_pacing_also_collapses_on_a_cpu_share() {
    let free = on_a_share("cubic", Span::from_millis(10), Span::from_millis(40));
    let mut paced = free.clone();
    paced.flows[0].paced = true;
    let (free, paced) = (mbps(&free), mbps(&paced));
    assert!(paced < free / 3.0, "paced {paced} Mbit/s, else {free}");
}

#[test]
fn short_slices_cost_less_goodput_than_long_ones_at_the_same_share() {
    let share = |slice: u64| on_a_share("bbr", Span::from_millis(slice), Span::from_millis(4 * slice));
    let [short, long] = [1, 20].map(|slice| mbps(&share(slice)));
    assert!(short > 2.0 * long, "slices of 1 ms: {short} Mbit/s, of 20 ms: {long}");
}

#[test]
fn a_host_is_limited_by_its_cpu_time_per_packet() {
    let mut experiment = on_a_share("cubic", Span::from_millis(1), Span::from_millis(2));
    let cpu = experiment.hosts.get_mut("sender").expect("there is one").cpu.as_mut().expect("it was given");
    // 100 us per packet on half a CPU: 5000 packets per second with 1448 bytes of payload, 57.9 Mbit/s.
    (cpu.per_packet_ns, cpu.per_ack_ns) = (Span::from_micros(100), Span::ZERO);
    let limited = mbps(&experiment);
    assert!((52.0..57.93).contains(&limited), "{limited} Mbit/s");
}

#[test]
fn the_seed_determines_the_position_of_slices() {
    let flows = |seed: u64, is_shared: bool| {
        let mut experiment = on_a_share("cubic", Span::from_millis(10), Span::from_millis(40));
        (experiment.seed, experiment.start_jitter_ns) = (seed, Span::ZERO);
        if !is_shared {
            experiment.hosts.get_mut("sender").expect("there is one").cpu = None;
        }
        run(&experiment).flows
    };
    assert_eq!(flows(1, true), flows(1, true));
    assert_ne!(flows(1, true), flows(2, true));
    assert_eq!(flows(1, false), flows(2, false), "nothing else in it depends on the seed");
}

#[test]
fn a_second_cpu_for_interrupts_does_not_prevent_the_collapse_of_bbr() {
    let (slice, period) = (Span::from_millis(10), Span::from_millis(20));
    let two = |cc: &str| {
        let mut experiment = on_a_share(cc, slice, period);
        experiment.hosts.get_mut("sender").expect("there is one").second_cpu = true;
        mbps(&experiment)
    };
    let (cubic, bbr) = (two("cubic"), two("bbr"));
    assert!(cubic > 85.0, "cubic gets {cubic} Mbit/s");
    assert!(bbr < cubic / 3.0, "bbr gets {bbr} Mbit/s, cubic {cubic}");
    assert!((two("bbr") - bbr).abs() < 1e-9, "the same twice");
}

#[test]
fn the_rule_of_the_paper_activates_when_slices_differ_in_length() {
    let with_jitter = |jitter_ppm: u32| {
        let mut experiment = on_a_share("bbr_cpu", Span::from_millis(2), Span::from_millis(8));
        experiment.flows[0].cc_params.insert("rule".to_owned(), 0.0);
        let cpu = experiment.hosts.get_mut("sender").expect("there is one").cpu.as_mut().expect("it was given");
        cpu.slice_jitter_ppm = jitter_ppm;
        mbps(&experiment)
    };
    let (even, uneven) = (with_jitter(0), with_jitter(900_000));
    assert!(uneven > 3.0 * even, "{even} Mbit/s in even slices, {uneven} in uneven ones");
}

#[test]
fn the_rule_schedule_keeps_up_with_cubic_in_periods_of_more_than_100_ms() {
    for period_ms in [133, 200] {
        let with = |cc: &str| {
            let mut experiment = on_a_share(cc, Span::from_millis(20), Span::from_millis(period_ms));
            if cc == "bbr3" {
                experiment.flows[0].cc_params.insert("cpu_rule".to_owned(), 2.0);
            }
            mbps(&experiment)
        };
        let cubic = with("cubic");
        for cc in ["bbr_cpu", "bbr3"] {
            let cured = with(cc);
            assert!(cured > 0.95 * cubic, "{cc} gets {cured} Mbit/s in periods of {period_ms} ms, cubic {cubic}");
        }
    }
}

#[test]
fn invalid_cpu_settings_are_rejected_with_the_key_path() {
    let refused = |change: &dyn Fn(&mut Experiment, &mut Cpu)| {
        let mut experiment = on_a_share("cubic", Span::from_millis(8), Span::from_millis(10));
        let mut cpu = experiment.hosts["sender"].cpu.expect("it was given");
        change(&mut experiment, &mut cpu);
        experiment.hosts.get_mut("sender").expect("there is one").cpu = Some(cpu);
        let traces = thalweg_plan::plan::Traces::default();
        match thalweg_sim::run(&experiment, &traces, &mut thalweg_trace::Nothing, &|| false) {
            Err(thalweg_sim::Error::Invalid { place, .. }) => place,
            other => panic!("{other:?}"),
        }
    };
    let credit = Credit { initial_ns: Span(2), max_ns: Span(2), baseline_ppm: 0, load_ppm: 0 };
    let set_second = |it: &mut Experiment, host: &str| it.hosts.get_mut(host).expect("it is there").second_cpu = true;
    // A slice of 8 ms plus a quarter of it equals the period.
    assert_eq!(refused(&|_, cpu| cpu.slice_jitter_ppm = 250_001), "hosts.sender.cpu.slice_jitter_ppm");
    assert_eq!(refused(&|it, _| set_second(it, "receiver")), "hosts.receiver.second_cpu");
    let with_two = |it: &mut Experiment, cpu: &mut Cpu| {
        set_second(it, "sender");
        cpu.credit = Some(credit);
    };
    assert_eq!(refused(&with_two), "hosts.sender.second_cpu");
    let more = Credit { initial_ns: Span(3), ..credit };
    assert_eq!(refused(&|_, cpu| cpu.credit = Some(more)), "hosts.sender.cpu.credit.initial_ns");
    let loaded = Credit { load_ppm: 1_000_001, ..credit };
    assert_eq!(refused(&|_, cpu| cpu.credit = Some(loaded)), "hosts.sender.cpu.credit.load_ppm");
}

fn mbps_between(rows: &thalweg_trace::Memory, from_s: u64, to_s: u64) -> f64 {
    let acked =
        |at_s: u64| rows.samples.iter().rev().find(|row| row.t_us <= at_s * 1_000_000).map_or(0, |row| row.acked_bytes);
    (acked(to_s) - acked(from_s)) as f64 * 8.0 / 1e6 / (to_s - from_s) as f64
}

#[test]
fn exhausted_cpu_credit_lowers_goodput_and_that_of_bbr_to_almost_zero() {
    let with_credit = |cc: &str, initial: Span| {
        let mut experiment = on_a_share(cc, Span::from_millis(3), Span::from_millis(30));
        experiment.sample_interval_ns = Span::from_millis(50);
        let cpu = experiment.hosts.get_mut("sender").expect("there is one").cpu.as_mut().expect("it was given");
        let max_ns = Span::from_secs(60);
        cpu.credit = Some(Credit { initial_ns: initial, max_ns, baseline_ppm: 100_000, load_ppm: 1_000_000 });
        run(&experiment)
    };
    // At a net cost of 0.9 per second, 2.7 s of credit last for 3 s.
    for (cc, max_after) in [("cubic", 70.0), ("bbr", 5.0)] {
        let rows = with_credit(cc, Span::from_millis(2_700));
        let (before, after) = (mbps_between(&rows, 1, 3), mbps_between(&rows, 5, 8));
        assert!(before > 85.0, "{cc} has credit and {before} Mbit/s");
        assert!(after < max_after, "{cc} has no credit and {after} Mbit/s");
        let ample = mbps_between(&with_credit(cc, Span::from_secs(60)), 5, 8);
        assert!(ample > 85.0, "{cc} has ample credit and {ample} Mbit/s");
    }
}
