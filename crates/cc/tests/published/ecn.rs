//! Tests of the response to ECN marks: RFC 8511 for Reno and CUBIC, RFC 8257 for DCTCP.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::BTreeMap;
use thalweg_cc::{CaState, Conn, Controller, Hz, Window, build};
use thalweg_units::{Bytes, MSS, Packets, Rate, Time};

const CWND: Window =
    Window { cwnd: Packets(1000), ssthresh: Packets(500), pacing_rate: Rate(u64::MAX), is_held_back: false };

fn controller(name: &str, params: &[(&str, f64)]) -> Box<dyn Controller> {
    let params: BTreeMap<String, f64> = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    build(name, &params).expect("it is in the catalog")
}

/// Returns a connection with `delivered` segments, of which `marked` were marked, and a window in flight.
fn conn(delivered: u64, marked: u64) -> Conn {
    Conn {
        now: Time::ZERO,
        jiffies: Hz::MILLISECOND_TICK.at(Time::ZERO),
        hz: Hz::MILLISECOND_TICK,
        mss: MSS,
        state: CaState::Open,
        srtt: None,
        min_rtt: None,
        inflight: CWND.cwnd,
        delivered: Packets(delivered),
        delivered_ce: Packets(marked),
        delivered_at: Time::ZERO,
        lost: Packets::ZERO,
        last_sent_jiffies: Hz::MILLISECOND_TICK.at(Time::ZERO),
        una_bytes: Bytes(delivered * MSS.0),
        next_bytes: Bytes((delivered + CWND.cwnd.0) * MSS.0),
        bytes_sent: Bytes((delivered + CWND.cwnd.0) * MSS.0),
        is_cwnd_limited: true,
        is_cwnd_exhausted: true,
        is_receiver_limited: false,
        is_app_limited: false,
        is_paced: false,
        next_departure: Time::ZERO,
    }
}

fn on_mark(controller: &mut dyn Controller) -> u64 {
    controller.ssthresh_on_mark(&conn(0, 0), &CWND).0
}

#[test]
fn a_mark_counts_as_a_loss_by_default() {
    for (name, expected) in [("reno", 500), ("cubic", 700)] {
        assert_eq!(on_mark(&mut *controller(name, &[])), expected);
        assert_eq!(controller(name, &[]).ssthresh(&conn(0, 0), &CWND).0, expected);
    }
}

#[test]
fn beta_ecn_reduces_cwnd_less_on_a_mark_than_on_a_loss() {
    for (name, beta, on_loss) in [("reno", 0.8, 500), ("cubic", 0.85, 700)] {
        let mut controller = controller(name, &[("beta_ecn", beta)]);
        let marked = on_mark(&mut *controller) as f64 / CWND.cwnd.0 as f64;
        assert!((marked - beta).abs() < 0.002, "{name}: {marked}");
        assert_eq!(controller.ssthresh(&conn(0, 0), &CWND).0, on_loss);
    }
}

/// Returns alpha after each of `windows` windows, in which `marked` out of 1000 segments were marked.
fn alphas(dctcp: &mut dyn Controller, windows: u64, marked: u64) -> Vec<f64> {
    let window = |at: u64| conn(1 + at * 1000, at * marked);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    dctcp.on_established(&window(0), &mut CWND.clone(), &mut rng);
    let mut alphas = Vec::new();
    for at in 1..=windows {
        dctcp.on_packets_acked(&window(at), Packets(1000), None, &mut CWND.clone());
        dctcp.report(&window(at), &mut |name, value| {
            assert_eq!(name, "alpha");
            alphas.push(value);
        });
    }
    alphas
}

#[test]
fn alpha_of_dctcp_follows_the_fraction_of_marked_segments_by_a_sixteenth_per_window() {
    let alphas = alphas(&mut *controller("dctcp", &[]), 100, 250);
    let expected = |windows: i32| 0.25 + 0.75 * (15.0_f64 / 16.0).powi(windows);
    for (at, alpha) in (1..).zip(alphas) {
        // Alpha is an integer in 1024ths, so rounding errors add up to at most 16 of them.
        assert!((alpha - expected(at)).abs() < 0.016, "window {at}: {alpha}");
    }
}

#[test]
fn dctcp_halves_its_window_while_alpha_is_one_and_hardly_reduces_it_at_a_small_alpha() {
    let mut dctcp = controller("dctcp", &[]);
    assert_eq!(on_mark(&mut *dctcp), 500, "alpha starts at 1");
    let alpha = *alphas(&mut *dctcp, 100, 20).last().expect("it is reported");
    assert!(alpha < 0.04);
    assert!(on_mark(&mut *dctcp) > 980);
}

#[test]
fn a_loss_halves_the_window_of_dctcp_also_while_it_answers_marks_and_one_that_a_probe_repairs_does_not() {
    for state in [CaState::Open, CaState::Cwr] {
        let mut dctcp = controller("dctcp", &[]);
        alphas(&mut *dctcp, 100, 20);
        let state = Conn { state, ..conn(0, 0) };
        let mut window = Window { ssthresh: dctcp.ssthresh(&state, &CWND), ..CWND };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        // After a loss that a probe has repaired, the state becomes Cwr and not Recovery.
        dctcp.on_state(&state, CaState::Cwr, &mut window, &mut rng);
        assert!(window.ssthresh > Packets(980));
        dctcp.on_state(&state, CaState::Recovery, &mut window, &mut rng);
        assert_eq!(window.ssthresh, Packets(500));
    }
}

#[test]
fn a_timeout_halves_the_window_of_dctcp() {
    let mut dctcp = controller("dctcp", &[]);
    alphas(&mut *dctcp, 100, 20);
    let mut window = Window { ssthresh: dctcp.ssthresh(&conn(0, 0), &CWND), ..CWND };
    dctcp.on_timeout(&conn(0, 0), &mut window);
    assert_eq!(window.ssthresh, Packets(500));
}
