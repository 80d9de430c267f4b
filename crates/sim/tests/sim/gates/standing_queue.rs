//! Tests that several BBR flows cause a standing queue of about one BDP, and that a single flow causes none.
//!
//! Flows that share a link overestimate their shares, at different times, until cwnd limits them at cwnd_gain (2) times
//! their BDP each. The total is 2 BDP, of which one is queue.
//!
//! Sources: Hock, Bless, Zitterbart, "Experimental evaluation of BBR congestion control", ICNP 2017 (1 BDP, up to 1.5);
//! Scherrer, Legner, Perrig, Schmid, "Model-based insights on the performance, fairness, and stability of BBR", IMC
//! 2022. The part beyond 1 BDP is the headroom for bursts that each flow adds to its window; to keep it small, the path
//! has a BDP of hundreds of packets here.

use crate::support::{bulk, run};
use thalweg_units::{Rate, Span};

const RATE: Rate = Rate::from_mbps(100);
const RTT: Span = Span::from_millis(80);
const SECONDS: u64 = 60;

/// Time in microseconds after which Startup and its queue are over.
const SETTLED_US: u64 = 15_000_000;

/// Range of the mean backlog in BDPs that counts as about one BDP.
const ABOUT_ONE: std::ops::Range<f64> = 0.7..1.3;

const SEEDS: [u64; 2] = [1, 2];

fn queue_bdp(cc: &str, flows: usize, cwnd_gain: Option<f64>) -> [f64; 2] {
    let backlogs = SEEDS.map(|seed| {
        let mut experiment = bulk(RATE, RTT, 8.0, &vec![cc; flows], SECONDS);
        experiment.seed = seed;
        for flow in &mut experiment.flows {
            flow.cc_params = cwnd_gain.map(|gain| ("cwnd_gain".to_owned(), gain)).into_iter().collect();
        }
        let rows = run(&experiment);
        let settled = rows.queue.iter().filter(|row| row.link == "forward" && row.t_us >= SETTLED_US);
        let backlogs: Vec<f64> = settled.map(|row| row.backlog_bytes as f64).collect();
        backlogs.iter().sum::<f64>() / backlogs.len() as f64 / RATE.bytes_in(RTT).0 as f64
    });
    println!("standing_queue: {flows} flows of {cc}, cwnd_gain {cwnd_gain:?}: {backlogs:.2?} BDP");
    backlogs
}

fn is_about_one(backlogs: [f64; 2]) -> bool {
    backlogs.iter().all(|backlog| ABOUT_ONE.contains(backlog))
}

#[test]
fn several_bbr_flows_keep_about_one_bdp_of_queue() {
    for flows in [2, 4, 8] {
        assert!(is_about_one(queue_bdp("bbr", flows, None)));
    }
}

#[test]
fn one_bbr_flow_keeps_almost_no_queue() {
    // Control: for a single flow, the probing phase queues a quarter of a BDP for an eighth of the time, and the next
    // phase drains it.
    let backlogs = queue_bdp("bbr", 1, None);
    assert!(!is_about_one(backlogs) && backlogs.iter().all(|backlog| *backlog < 0.15));
}

#[test]
fn the_standing_queue_is_cwnd_gain_minus_one_bdp() {
    // Control: a different cwnd_gain produces a different queue.
    for gain in [1.5, 3.0] {
        let backlogs = queue_bdp("bbr", 4, Some(gain));
        assert!(
            !is_about_one(backlogs) && backlogs.iter().all(|backlog| (0.65..1.3).contains(&(backlog / (gain - 1.0))))
        );
    }
    // CUBIC fills most of the buffer.
    assert!(!is_about_one(queue_bdp("cubic", 4, None)));
}
