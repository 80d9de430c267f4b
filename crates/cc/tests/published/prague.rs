//! Tests of Prague: draft-briscoe-iccrg-prague-congestion-control-04, section 2, and RFC 9331, section 4.3.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::collections::BTreeMap;
use thalweg_cc::{Ack, CaState, Conn, Controller, EcnFeedback, Hz, Window, build};
use thalweg_units::{Bytes, Ecn, MSS, Packets, Rate, Span, Time};

/// A Prague flow with a window of `cwnd`, in steps of a round trip.
struct Flow {
    prague: Box<dyn Controller>,
    conn: Conn,
    window: Window,
    rng: Xoshiro256PlusPlus,
}

impl Flow {
    fn new(rtt: Span, cwnd: u64, params: &[(&str, f64)]) -> Flow {
        let params: BTreeMap<String, f64> = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let mut flow = Flow {
            prague: build("prague", &params).expect("it is in the catalog"),
            conn: conn(rtt, cwnd),
            window: Window {
                cwnd: Packets(cwnd),
                ssthresh: Packets::MAX,
                pacing_rate: Rate(u64::MAX),
                is_held_back: false,
            },
            rng: Xoshiro256PlusPlus::seed_from_u64(1),
        };
        flow.prague.on_established(&flow.conn, &mut flow.window, &mut flow.rng);
        flow
    }

    /// Handles an ACK of `acked` segments, of which `marked` were marked.
    fn ack(&mut self, acked: u64, marked: u64) {
        self.conn.delivered += Packets(acked);
        self.conn.delivered_ce += Packets(marked);
        let ack = Ack {
            acked: Packets(acked),
            lost: Packets::ZERO,
            prior_inflight: self.window.cwnd,
            rtt: self.conn.srtt,
            is_delayed: false,
            is_marked: marked > 0,
            is_probe_answer: false,
            rate: None,
        };
        self.prague.on_ack(&self.conn, &ack, &mut self.window, &mut self.rng);
    }

    /// Advances by a round trip in which all of the window is acknowledged, one segment per ACK; the first `marked`
    /// were marked.
    fn round(&mut self, marked: u64) {
        self.conn.now += self.conn.srtt.expect("it is set");
        let window = self.window.cwnd.0;
        for at in 0..window {
            self.conn.una_bytes += MSS;
            self.conn.next_bytes = self.conn.una_bytes + Bytes(window * MSS.0);
            self.ack(1, u64::from(at < marked));
        }
    }

    fn mark(&mut self) {
        self.window.ssthresh = self.prague.ssthresh_on_mark(&self.conn, &self.window);
        self.ack(1, 1);
    }

    fn lose(&mut self) {
        self.window.ssthresh = self.prague.ssthresh(&self.conn, &self.window);
        self.conn.state = CaState::Recovery;
        self.ack(0, 0);
    }

    fn value(&self, key: &str) -> Option<f64> {
        let mut reported = None;
        self.prague.report(&self.conn, &mut |name, value| {
            if name == key {
                reported = Some(value);
            }
        });
        reported
    }

    fn cwnd(&self) -> f64 {
        self.value("cwnd_fraction_packets").expect("it is always reported")
    }
}

fn conn(rtt: Span, cwnd: u64) -> Conn {
    let now = Time(1_000_000_000);
    Conn {
        now,
        jiffies: Hz::MILLISECOND_TICK.at(now),
        hz: Hz::MILLISECOND_TICK,
        mss: MSS,
        state: CaState::Open,
        srtt: Some(rtt),
        min_rtt: Some(rtt),
        inflight: Packets(cwnd),
        delivered: Packets(1),
        delivered_ce: Packets::ZERO,
        delivered_at: now,
        lost: Packets::ZERO,
        last_sent_jiffies: Hz::MILLISECOND_TICK.at(now),
        una_bytes: Bytes::ZERO,
        next_bytes: Bytes(cwnd * MSS.0),
        bytes_sent: Bytes(cwnd * MSS.0),
        is_cwnd_limited: true,
        is_cwnd_exhausted: true,
        is_receiver_limited: false,
        is_app_limited: false,
        is_paced: true,
        next_departure: now,
    }
}

const FAR: Span = Span::from_millis(50);
const NEAR: Span = Span::from_millis(5);
const AT_ONCE: (&str, f64) = ("transition_rounds", 0.0);

#[test]
fn segments_are_ect1_and_marks_are_counted_exactly() {
    let flow = Flow::new(FAR, 100, &[]);
    assert_eq!(flow.prague.ecn_codepoint(), Ecn::Ect1);
    assert_eq!(flow.prague.needs_ecn(), Some(EcnFeedback::Accurate));
}

#[test]
fn slow_start_doubles_the_window_and_the_first_mark_halves_it() {
    let mut flow = Flow::new(FAR, 100, &[]);
    flow.round(0);
    assert_eq!(flow.window.cwnd, Packets(200));
    assert_eq!(flow.value("alpha"), None, "no average before the first mark");
    flow.mark();
    assert_eq!((flow.window.cwnd, flow.window.ssthresh), (Packets(100), Packets(100)));
    assert_eq!(flow.value("alpha"), Some(1.0));
}

#[test]
fn alpha_follows_the_fraction_of_marked_segments_by_a_sixteenth_per_round_trip_down_to_a_millionth() {
    let mut flow = Flow::new(FAR, 100, &[]);
    flow.mark();
    // The first samples include the mark.
    (0..3).for_each(|_| flow.round(0));
    let start = flow.value("alpha").expect("it was marked");
    for round in 1..=200 {
        flow.round(0);
        let expected = start * (15.0_f64 / 16.0).powi(round);
        let alpha = flow.value("alpha").expect("it was marked");
        assert!((alpha / expected - 1.0).abs() < 0.01, "round {round}: {alpha}, expected {expected}");
    }
}

#[test]
fn on_a_short_path_alpha_is_updated_once_per_virtual_round_trip() {
    let mut flow = Flow::new(NEAR, 100, &[AT_ONCE]);
    flow.mark();
    (0..50).for_each(|_| flow.round(0));
    let updates = flow.value("alpha").expect("it was marked").ln() / (15.0_f64 / 16.0).ln();
    // The first sample includes the mark.
    assert!((8.0..=10.1).contains(&updates), "{updates} updates in 250 ms");
}

#[test]
fn a_mark_reduces_the_window_by_half_of_alpha_once_per_round_trip() {
    let mut flow = Flow::new(FAR, 100, &[("alpha_init", 0.2)]);
    flow.mark();
    let before = flow.cwnd();
    flow.mark();
    assert!((flow.cwnd() - before).abs() < 0.1, "the same round trip");
    flow.conn.now += FAR;
    flow.mark();
    assert!((flow.cwnd() / before - 0.9).abs() < 0.01, "{} after {before}", flow.cwnd());
}

#[test]
fn on_a_short_path_reductions_are_a_virtual_round_trip_apart() {
    let mut flow = Flow::new(NEAR, 1000, &[AT_ONCE]);
    flow.mark();
    let half = flow.cwnd();
    flow.conn.now += Span::from_millis(24);
    flow.mark();
    assert!(flow.cwnd() >= half);
    flow.conn.now += Span::from_millis(1);
    flow.mark();
    assert!(flow.cwnd() < 0.6 * half);
}

/// Returns the growth of the window in a round trip whose first `marked` segments were marked.
fn growth(rtt: Span, params: &[(&str, f64)], state: CaState, marked: u64) -> f64 {
    let mut flow = Flow::new(rtt, 200, params);
    flow.mark();
    flow.conn.state = state;
    let before = flow.cwnd();
    flow.round(marked);
    flow.cwnd() - before
}

#[test]
fn unmarked_segments_raise_the_window_by_one_per_round_trip_also_after_a_reduction() {
    for state in [CaState::Open, CaState::Cwr] {
        let (all, half) = (growth(FAR, &[], state, 0), growth(FAR, &[], state, 50));
        assert!((all - 1.0).abs() < 0.02 && (half - 0.5).abs() < 0.02, "{state:?}: {all} and {half}");
    }
    assert_eq!(growth(FAR, &[], CaState::Recovery, 0), 0.0);
}

#[test]
fn a_round_trip_of_a_fifth_of_25_ms_raises_the_window_by_a_25th_after_the_transition_alone() {
    let (short, young) = (growth(NEAR, &[AT_ONCE], CaState::Open, 0), growth(NEAR, &[], CaState::Open, 0));
    assert!((short - 1.0 / 25.0).abs() < 0.002 && (young - 1.0).abs() < 0.02, "{short} and {young}");
}

#[test]
fn a_loss_halves_the_window_and_a_mark_before_it_in_the_same_round_trip_does_not_add_to_that() {
    let mut alone = Flow::new(FAR, 100, &[]);
    alone.lose();
    assert_eq!(alone.window.cwnd, Packets(50));
    let mut both = Flow::new(FAR, 100, &[]);
    both.mark();
    both.conn.state = CaState::Cwr;
    both.prague.on_state(&both.conn, CaState::Recovery, &mut both.window, &mut both.rng);
    assert_eq!(both.window.ssthresh, Packets(50));
}

#[test]
fn after_a_timeout_slow_start_restores_half_the_window() {
    let mut flow = Flow::new(FAR, 100, &[]);
    flow.lose();
    flow.conn.state = CaState::Loss;
    flow.window.cwnd = Packets(1);
    flow.ack(2, 0);
    assert_eq!(flow.window.cwnd, Packets(3));
    flow.ack(90, 0);
    assert_eq!(flow.window.cwnd, Packets(50));
}

#[test]
fn pacing_rate_is_one_window_per_round_trip_in_bursts_of_250_us() {
    assert!(build("prague", &BTreeMap::new()).expect("it is in the catalog").paces());
    let mut flow = Flow::new(FAR, 2000, &[]);
    flow.mark();
    let window = 1000.0 * 1500.0 * 8.0 / FAR.as_secs_f64();
    let rate = flow.window.pacing_rate.0 as f64;
    assert!((rate / window - 1.0).abs() < 0.01, "{rate} for {window}");
    // 240 Mbit/s: 7.3 kB in 244 us.
    assert_eq!(flow.prague.max_burst(&flow.window), Packets(5));
    let slow = Window { pacing_rate: Rate::from_mbps(5), ..flow.window };
    assert_eq!(flow.prague.max_burst(&slow), Packets(1));
}

#[test]
fn below_two_segments_the_pacing_rate_keeps_falling() {
    let mut flow = Flow::new(Span::from_millis(1), 4, &[]);
    for _ in 0..20 {
        flow.conn.now += Span::from_millis(1);
        flow.mark();
    }
    assert_eq!(flow.window.cwnd, Packets(2));
    assert!(flow.window.pacing_rate < Rate::from_mbps(1), "{}", flow.window.pacing_rate);
    assert!(flow.window.pacing_rate >= Rate(100_000));
}
