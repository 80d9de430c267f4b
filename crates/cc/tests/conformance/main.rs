//! Tests invariants of every controller in the catalog under arbitrary sequences of events.
//!
//! Random lists of events drive each controller in Linux's order. The [`Rig`] checks its window after every event.

mod rig;

use proptest::prelude::*;
use rig::{Op, Rig, Start, Trace};
use thalweg_cc::{CATALOG, CaState, Entry, Param};
use thalweg_units::{Packets, Span};

/// Generates round-trip times, with all magnitudes equally likely.
fn rtt() -> impl Strategy<Value = Span> {
    (0.0..=7.0f64).prop_map(|exponent| Span::from_micros(10f64.powf(exponent) as u64))
}

/// Generates counts, with all magnitudes equally likely.
fn packets() -> impl Strategy<Value = Packets> {
    (0.0..=6.0f64).prop_map(|exponent| Packets(10f64.powf(exponent) as u64))
}

fn op() -> impl Strategy<Value = Op> {
    let ack = (packets(), rtt(), prop_oneof![4 => Just(Packets(0)), 1 => packets()], any::<bool>(), 0..4u8);
    prop_oneof![
        16 => ack.prop_map(|(acked, rtt, lost, is_delayed, sample)| Op::Ack { acked, rtt, lost, is_delayed, sample }),
        4 => packets().prop_map(Op::SendOnly),
        2 => rtt().prop_map(Op::Wait),
        2 => Just(Op::Recovered),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
        1 => Just(Op::Ecn),
        1 => rtt().prop_map(Op::Pause),
    ]
}

fn start() -> impl Strategy<Value = Start> {
    (packets(), prop::option::of(rtt()), 100..=65_483u64, any::<u64>()).prop_map(|(cwnd, rtt, mss, seed)| Start {
        cwnd,
        rtt,
        mss,
        seed,
    })
}

/// More parameters than any controller has.
const ALL: usize = 32;

/// Number of parameters with which a controller's window still grows steadily: for BBR, the gains and the timing of
/// ProbeBW.
const STEADY: usize = 8;

/// Generates a position for each of the first `count` parameters, from 0 (its minimum) to 1 (its maximum).
fn param_positions(count: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64], count)
}

fn params(entry: &Entry, positions: &[f64]) -> Vec<(&'static str, f64)> {
    let value = |param: &Param, position: f64| {
        let value = param.min + position * (param.max - param.min);
        if param.is_whole { value.round() } else { value }
    };
    entry.params.iter().zip(positions).map(|(param, position)| (param.name, value(param, *position))).collect()
}

fn run(entry: &Entry, positions: &[f64], start: Start, ops: &[Op]) -> Vec<Trace> {
    let mut rig = Rig::new(entry.name, &params(entry, positions), start);
    ops.iter().map(|op| rig.apply(*op)).collect()
}

proptest! {
    #[test]
    fn cwnd_stays_valid_for_any_sequence_of_events(
        positions in param_positions(ALL),
        start in start(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        for entry in CATALOG {
            run(entry, &positions, start, &ops);
        }
    }

    #[test]
    fn the_same_events_and_seed_give_the_same_decisions(
        positions in param_positions(ALL),
        start in start(),
        ops in prop::collection::vec(op(), 1..100),
    ) {
        for entry in CATALOG {
            prop_assert_eq!(run(entry, &positions, start, &ops), run(entry, &positions, start, &ops));
        }
    }

    #[test]
    fn a_window_at_most_doubles_per_round_trip(
        positions in param_positions(STEADY),
        start in start(),
        // Ten rounds end before a ProbeRTT (for BBRv3, after 5 s), after which cwnd is restored immediately.
        rtt_us in 1..450_000u64,
        per_ack in 1..20u64,
    ) {
        for entry in CATALOG {
            let mut rig = Rig::new(entry.name, &params(entry, &positions), Start { cwnd: Packets(10), ..start });
            for _ in 0..10 {
                let round = rig.window.cwnd;
                let mut unacked = round.0;
                let mut elapsed = Span::from_micros(rtt_us);
                rig.send_all();
                while unacked > 0 {
                    let acked = unacked.min(per_ack);
                    unacked -= acked;
                    let lost = Packets(0);
                    rig.receive(Op::Ack { acked: Packets(acked), rtt: elapsed, lost, is_delayed: false, sample: 0 });
                    elapsed = Span::ZERO;
                }
                prop_assert!(rig.window.cwnd.0 <= 2 * round.0, "{}: from {round} to {}", entry.name, rig.window.cwnd);
            }
        }
    }

    #[test]
    fn cwnd_grows_again_on_a_clean_path_after_any_sequence_of_events(
        positions in param_positions(STEADY),
        start in start(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        for entry in CATALOG {
            let mut rig = Rig::new(entry.name, &params(entry, &positions), start);
            for op in &ops {
                rig.apply(*op);
            }
            rig.apply(Op::Recovered);
            rig.apply(Op::Pause(Span::ZERO));
            // A path of 100 packets in 10 ms, for 30 s: long enough to discard measurements of the earlier path.
            let mut most = Packets::ZERO;
            for _ in 0..3_000 {
                rig.send_all();
                let acked = Packets(rig.inflight.0.min(100));
                let rtt = Span::from_millis(10);
                rig.receive(Op::Ack { acked, rtt, lost: Packets(0), is_delayed: false, sample: 1 });
                most = most.max(rig.window.cwnd);
            }
            prop_assert_eq!(rig.state, CaState::Open);
            prop_assert!(most >= Packets(50), "{}: at most {most}: {:?}", entry.name, rig.apply(Op::Wait(Span::ZERO)));
        }
    }
}
