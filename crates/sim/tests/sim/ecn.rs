//! End-to-end tests of ECN: marks of a queue reduce the window without a loss.

use crate::support::{bulk, dualpi2, run};
use thalweg_plan::plan::{Buffer, Experiment, Queue};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Packets, Rate, Span};

const RATE: Rate = Rate::from_mbps(50);
const RTT: Span = Span::from_millis(40);

/// Returns three queues that mark, otherwise with Linux's defaults.
fn queues() -> [Queue; 3] {
    let (target_ns, interval_ns, ce_threshold_ns) = (Span::from_millis(5), Span::from_millis(100), None);
    [
        Queue::Codel { target_ns, interval_ns, ecn: true, ce_threshold_ns },
        Queue::FqCodel {
            flows: 1024,
            quantum_bytes: Bytes(1514),
            memory_limit_bytes: Bytes(32 << 20),
            drop_batch: 64,
            target_ns,
            interval_ns,
            ecn: true,
            ce_threshold_ns,
        },
        Queue::Pie {
            target_ns: Span::from_millis(15),
            tupdate_ns: Span::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: true,
        },
    ]
}

fn path(cc: &str, queue: &Queue, ecn: bool) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 1.0, &[cc], 20);
    experiment.forward.queue = queue.clone();
    experiment.forward.buffer = Buffer::Packets { packets: Packets(1000) };
    experiment.flows[0].ecn = ecn;
    experiment
}

/// Returns the numbers of packets dropped and marked by the queue, of retransmissions, and of segments reported as
/// marked.
fn counts(rows: &Memory) -> (u64, u64, u64, u64) {
    let queue = rows.queue.iter().rfind(|row| row.link == "forward").expect("there are samples of it");
    let flow = &rows.flows[0];
    (
        queue.dropped_packets,
        queue.marked_packets,
        flow.retransmits.expect("sim counts them"),
        flow.marked_segments.expect("sim counts them"),
    )
}

#[test]
fn with_ecn_an_aqm_drops_nothing_and_nothing_is_retransmitted() {
    for queue in queues() {
        let name = queue.name();
        let rows = run(&path("cubic", &queue, true));
        let (dropped, marked, retransmits, reported) = counts(&rows);
        assert_eq!((dropped, retransmits), (0, 0), "{name}");
        // With RFC 3168, a mark is reported until CWR, so about a window of segments is reported per mark.
        assert!(marked > 0 && reported > marked, "{name}: {marked} marks, {reported} reported");
        let share = rows.flows[0].goodput_bps / RATE.0 as f64;
        assert!(share > 0.75, "{name}: {share}");

        let (dropped, marked, retransmits, reported) = counts(&run(&path("cubic", &queue, false)));
        assert!(dropped > 0 && retransmits >= dropped, "{name} without ECN: {dropped} drops");
        assert_eq!((marked, reported), (0, 0), "{name} without ECN");
    }
}

#[test]
fn a_queue_that_does_not_mark_drops_packets_of_ecn_flows() {
    let queue = Queue::Codel {
        target_ns: Span::from_millis(5),
        interval_ns: Span::from_millis(100),
        ecn: false,
        ce_threshold_ns: None,
    };
    let (dropped, marked, ..) = counts(&run(&path("cubic", &queue, true)));
    assert!(dropped > 0 && marked == 0, "{dropped} drops, {marked} marks");
}

/// Returns a queue that marks every packet with a sojourn time above 6 ms: about a seventh of the round-trip time, as
/// DCTCP requires (RFC 8257, section 4.1).
fn step() -> Queue {
    Queue::Codel {
        target_ns: Span::from_secs(1),
        interval_ns: Span::from_secs(1),
        ecn: true,
        ce_threshold_ns: Some(Span::from_millis(6)),
    }
}

#[test]
fn dctcp_always_negotiates_ecn_and_reports_each_mark_of_the_queue_once() {
    let rows = run(&path("dctcp", &step(), false));
    let (dropped, marked, retransmits, reported) = counts(&rows);
    assert_eq!((dropped, retransmits), (0, 0));
    // Marks of the last round trip are not yet acknowledged.
    assert!(marked > 1000 && (marked - 100..=marked).contains(&reported), "{marked} marks, {reported} reported");
    let alpha = rows.state.iter().rfind(|row| row.key == "alpha").expect("it is reported").value;
    assert!((0.0..0.9).contains(&alpha), "{alpha}");
}

/// At a step, DCTCP's window varies by several segments around the BDP, and Reno's by half of it.
#[test]
fn dctcp_fills_the_link_with_a_step_marking_queue_and_reno_does_not() {
    let share = |cc: &str| {
        let rows = run(&path(cc, &step(), true));
        // Only the second half counts: DCTCP at first responds to marks like Reno.
        let acked =
            |from_us: u64| rows.samples.iter().find(|row| row.t_us >= from_us).expect("it lasts 20 s").acked_bytes;
        (acked(20_000_000) - acked(10_000_000)) as f64 * 8.0 / 10.0 / RATE.0 as f64
    };
    let (dctcp, reno) = (share("dctcp"), share("reno"));
    // Headers take 3.5 % of the rate.
    assert!(dctcp > 0.96 && reno < 0.9, "DCTCP {dctcp}, Reno {reno}");
}

#[test]
fn beta_ecn_of_rfc_8511_increases_goodput_with_a_short_queue() {
    let share = |beta_ecn: Option<f64>| {
        let mut experiment = path("cubic", &queues()[0], true);
        experiment.flows[0].cc_params.extend(beta_ecn.map(|beta| ("beta_ecn".to_owned(), beta)));
        run(&experiment).flows[0].goodput_bps / RATE.0 as f64
    };
    assert!(share(Some(0.85)) > share(None) + 0.01, "{} and {}", share(Some(0.85)), share(None));
}

/// ECT(0) is served by the classic queue, which has a target of 15 ms; the L queue marks from 1 ms on (RFC 9332).
#[test]
fn dctcp_with_ect1_is_served_by_the_low_latency_queue_of_dualpi2() {
    let queueing_ms = |ect1: f64| {
        let mut experiment = path("dctcp", &dualpi2(), false);
        experiment.flows[0].cc_params.insert("ect1".to_owned(), ect1);
        let rows = run(&experiment);
        let rtt_us = rows.flows[0].rtt_p50_us.expect("it has round-trip times");
        (rtt_us - RTT.as_micros() as f64) / 1000.0
    };
    let (ect0, ect1) = (queueing_ms(0.0), queueing_ms(1.0));
    assert!(ect1 < 2.0 && ect0 > 8.0, "ECT(0) {ect0} ms, ECT(1) {ect1} ms");
}
