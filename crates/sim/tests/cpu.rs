//! Hosts that share a CPU: what is known of BBR and CUBIC there, and that it comes out the same each time.
//!
//! Elmenhorst and Aschenbruck, "2BRobust" (2026): on 100 Mbit/s with 10 ms, a BBR sender that has its CPU for 10 ms out of
//! 20 ms sinks towards 10 Mbit/s; CUBIC, which sends a window at once when it is on CPU, does not; CUBIC behind `fq`, which
//! spreads its packets, falls, too.

mod support;

use support::{bulk, run};
use thalweg_plan::plan::{Cpu, Experiment};
use thalweg_units::{Rate, Span};

const RATE: Rate = Rate::from_mbps(100);
const RTT: Span = Span::from_millis(10);

fn on_a_share(cc: &str, slice: Span, period: Span) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 2.0, &[cc], 8);
    let cost = Span::from_micros(1);
    let cpu = Cpu { slice_ns: slice, period_ns: period, per_packet_ns: cost, per_ack_ns: cost };
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
    let whole = mbps(&on_a_share("bbr", slice, slice));
    assert!(whole > 90.0, "bbr on a whole CPU gets {whole} Mbit/s");
}

#[test]
fn it_is_pacing_that_suffers_cubic_falls_as_soon_as_it_is_paced() {
    let free = on_a_share("cubic", Span::from_millis(10), Span::from_millis(40));
    let mut paced = free.clone();
    paced.flows[0].paced = true;
    let (free, paced) = (mbps(&free), mbps(&paced));
    assert!(paced < free / 3.0, "paced {paced} Mbit/s, else {free}");
}

#[test]
fn short_slices_hurt_less_than_long_ones_at_the_same_share() {
    let share = |slice: u64| on_a_share("bbr", Span::from_millis(slice), Span::from_millis(4 * slice));
    let [short, long] = [1, 20].map(|slice| mbps(&share(slice)));
    assert!(short > 2.0 * long, "slices of 1 ms: {short} Mbit/s, of 20 ms: {long}");
}

#[test]
fn a_host_that_needs_longer_for_each_packet_than_its_share_gives_is_limited_by_that() {
    let mut experiment = on_a_share("cubic", Span::from_millis(1), Span::from_millis(2));
    let cpu = experiment.hosts.get_mut("sender").expect("there is one").cpu.as_mut().expect("it was given");
    // 100 us of half a CPU: 5000 packets of 1448 bytes of payload in a second, 57.9 Mbit/s.
    (cpu.per_packet_ns, cpu.per_ack_ns) = (Span::from_micros(100), Span::ZERO);
    let limited = mbps(&experiment);
    assert!((52.0..57.93).contains(&limited), "{limited} Mbit/s");
}

#[test]
fn slices_are_where_the_seed_puts_them() {
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
    assert_eq!(flows(1, false), flows(2, false), "nothing else in it hangs on the seed");
}
