//! Tests of the effects of loss, buffers and the receive window on each algorithm.
//!
//! The bounds are wide: they check the sign and magnitude of published results, not the exact values.

use crate::gates::PAYLOAD;
use crate::support::{self, bulk, of, run, share};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Rate, Span};

const MBPS_100: Rate = Rate::from_mbps(100);
const MS_20: Span = Span::from_millis(20);

fn median_rtt_us(rows: &Memory, flow: &str) -> f64 {
    of(rows, flow)[0].rtt_p50_us.expect("it has samples")
}

#[test]
fn every_algorithm_fills_a_clean_path_with_a_bdp_of_buffer() {
    for cc in ["reno", "cubic", "bbr"] {
        let rows = run(&bulk(MBPS_100, MS_20, 1.0, &[cc], 30));
        let used = share(&rows.flows[0], MBPS_100) / PAYLOAD;
        assert!(used > 0.93 && used <= 1.0, "{cc} {used}");
    }
}

#[test]
fn loss_based_flows_need_buffer_where_bbr_does_not() {
    // IMC'23 replication of IMC'19, grid cells of 0.05 to 0.1 BDP: BBR is tens of per cent faster than CUBIC there, and
    // a few per cent slower above half a BDP.
    let gain = |buffer_bdp: f64| {
        let goodput = |cc| run(&bulk(MBPS_100, Span::from_millis(50), buffer_bdp, &[cc], 60)).flows[0].goodput_bps;
        goodput("bbr") / goodput("cubic")
    };
    let (shallow, deep) = (gain(0.06), gain(2.0));
    assert!(shallow > 1.15, "{shallow}");
    assert!((0.92..1.02).contains(&deep), "{deep}");
}

#[test]
fn cubic_fills_a_deep_buffer_and_bbr_leaves_it_empty() {
    let rtt_ms = |cc: &str| {
        median_rtt_us(&run(&bulk(Rate::from_mbps(10), Span::from_millis(40), 10.0, &[cc], 60)), &format!("{cc}-0"))
            / 1e3
    };
    let (cubic, bbr) = (rtt_ms("cubic"), rtt_ms("bbr"));
    assert!(bbr < 60.0 && cubic > 3.0 * bbr, "{bbr} {cubic}");
}

#[test]
fn bbr_keeps_its_rate_under_random_loss_that_starves_cubic() {
    let goodput = |cc: &str, loss: f64| {
        let mut experiment = bulk(MBPS_100, Span::from_millis(25), 8.0, &[cc], 30);
        experiment.forward.loss = support::loss(loss);
        share(&run(&experiment).flows[0], MBPS_100)
    };
    // IMC'19, figure 7: with 1 % loss CUBIC is below 20 Mbit/s out of 100, BBR above 90.
    assert!(goodput("bbr", 0.01) > 0.85, "{}", goodput("bbr", 0.01));
    assert!(goodput("cubic", 0.01) < 0.25, "{}", goodput("cubic", 0.01));
    assert!(goodput("cubic", 0.0) > 0.9);
}

#[test]
fn bbr_beats_cubic_in_shallow_buffers_and_loses_in_deep_ones() {
    let bbr_share = |buffer_bdp: f64| {
        let rows = run(&bulk(MBPS_100, MS_20, buffer_bdp, &["bbr", "cubic"], 60));
        let goodput = |flow| of(&rows, flow)[0].goodput_bps;
        goodput("bbr-0") / (goodput("bbr-0") + goodput("cubic-1"))
    };
    let (shallow, deep) = (bbr_share(0.1), bbr_share(8.0));
    assert!(shallow > 0.8, "{shallow}");
    assert!(deep < 0.6, "{deep}");
}

#[test]
fn a_small_receive_buffer_limits_bbr_only_on_a_long_path() {
    // Li et al. (2018), figures 3 and 4: 1000 kB of tcp_rmem suffice at a short round-trip time, but not at a long one.
    let used = |rtt_ms: u64, rmem: u64| {
        let mut experiment = bulk(MBPS_100, Span::from_millis(rtt_ms), 1.0, &["bbr"], 15);
        experiment.hosts.get_mut("receiver").expect("there is one").rcvbuf_max_bytes = Bytes(rmem);
        share(&run(&experiment).flows[0], MBPS_100)
    };
    assert!(used(10, 1_000_000) > 0.85);
    assert!(used(100, 1_000_000) < 0.6);
    assert!(used(100, 80_000_000) > 0.8);
}
