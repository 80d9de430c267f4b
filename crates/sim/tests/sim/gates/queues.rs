//! Tests of queue disciplines with TCP: the guarantees of each, which a drop-tail queue lacks.
//!
//! Sources: RFC 8289, section 3.2 (CoDel keeps the standing delay near its target); RFC 8033, section 4 (PIE holds its
//! reference delay); RFC 8290, section 1.2 (a sparse flow is not queued behind others); RFC 9332, section 1 (the L
//! queue has a delay of less than a millisecond); RFC 3168 (a mark replaces a drop).

use crate::support::{bulk, dualpi2, run};
use thalweg_plan::plan::{Experiment, Flow, Load, Queue};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Rate, Span};

const RATE: Rate = Rate::from_mbps(50);
const RTT: Span = Span::from_millis(40);
const SECONDS: u64 = 20;

/// Time in microseconds after which slow start and its queue are over.
const SETTLED_US: u64 = 5_000_000;

fn codel(ecn: bool) -> Queue {
    let (target_ns, interval_ns) = (Span::from_millis(5), Span::from_millis(100));
    Queue::Codel { target_ns, interval_ns, ecn, ce_threshold_ns: None }
}

fn pie() -> Queue {
    let (target_ns, tupdate_ns) = (Span::from_millis(15), Span::from_millis(15));
    Queue::Pie { target_ns, tupdate_ns, alpha: 2, beta: 20, ecn: false }
}

fn fq_codel() -> Queue {
    Queue::FqCodel {
        flows: 1024,
        quantum_bytes: Bytes(1514),
        memory_limit_bytes: Bytes(32 << 20),
        drop_batch: 64,
        target_ns: Span::from_millis(5),
        interval_ns: Span::from_millis(100),
        ecn: false,
        ce_threshold_ns: None,
    }
}

fn cubic_flows(flows: usize, queue: Queue) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 8.0, &vec!["cubic"; flows], SECONDS);
    experiment.forward.queue = queue;
    experiment
}

fn mean_sojourn_ms(rows: &Memory) -> f64 {
    let mut settled = rows.queue.iter().filter(|row| row.link == "forward" && row.t_us >= SETTLED_US);
    let (first, last) = (settled.next().expect("a sample"), settled.next_back().expect("a sample"));
    let sojourn_us = last.sojourn_sum_us.expect("measured") - first.sojourn_sum_us.expect("measured");
    sojourn_us as f64 / (last.sent_packets - first.sent_packets) as f64 / 1000.0
}

#[test]
fn pie_keeps_its_target_with_many_flows_and_a_fifo_fills_up() {
    let delay = mean_sojourn_ms(&run(&cubic_flows(10, pie())));
    assert!((10.0..20.0).contains(&delay), "PIE: {delay} ms");
    let control = mean_sojourn_ms(&run(&cubic_flows(10, Queue::Fifo {})));
    assert!(control > 150.0, "fifo: {control} ms");
}

#[test]
fn codel_keeps_the_delay_of_a_flow_near_its_target() {
    let delay = mean_sojourn_ms(&run(&cubic_flows(1, codel(false))));
    assert!(delay < 8.0, "CoDel: {delay} ms");
    let control = mean_sojourn_ms(&run(&cubic_flows(1, Queue::Fifo {})));
    assert!(control > 40.0, "fifo: {control} ms");
}

/// Returns the 95th percentile of the RTTs in ms of requests of 1250 bytes that compete with twenty CUBIC flows. Each
/// starts 10 ms after the previous one was acknowledged.
fn sparse_rtt_p95_ms(queue: Queue) -> f64 {
    let mut experiment = cubic_flows(20, queue);
    let load = Load::Requests { size_bytes: Bytes(1250), think_ns: Span::from_millis(10), count: None };
    experiment
        .flows
        .push(Flow { start_ns: thalweg_units::Time(SETTLED_US * 1000), ..Flow::new("sparse", "cubic", load) });
    let rows = run(&experiment);
    let mut rtts: Vec<f64> =
        rows.flows.iter().filter(|row| &*row.flow == "sparse").filter_map(|row| row.rtt_p50_us).collect();
    rtts.sort_unstable_by(f64::total_cmp);
    rtts[rtts.len() * 95 / 100] / 1000.0
}

#[test]
fn fq_codel_isolates_a_sparse_flow_from_twenty_cubic_flows() {
    let rtt = sparse_rtt_p95_ms(fq_codel());
    assert!(rtt < 50.0, "fq_codel: {rtt} ms on a path of 40 ms");
    let control = sparse_rtt_p95_ms(Queue::Fifo {});
    assert!(control > 200.0, "fifo: {control} ms");
}

/// Returns the median RTT in ms of a DCTCP flow whose segments are ECT(1), and that competes with a CUBIC flow.
fn scalable_rtt_ms(queue: Queue) -> f64 {
    let mut experiment = cubic_flows(1, queue);
    let scalable = Flow::new("scalable", "dctcp", Load::Unlimited);
    experiment.flows.push(Flow { cc_params: [("ect1".to_owned(), 1.0)].into(), ecn: true, ..scalable });
    let rows = run(&experiment);
    let row = rows.flows.iter().find(|row| &*row.flow == "scalable").expect("its row");
    row.rtt_p50_us.expect("RTT samples") / 1000.0
}

#[test]
fn dualpi2_keeps_its_low_latency_queue_under_a_millisecond() {
    // The path's RTT is 40 ms, and a packet takes 0.24 ms to send.
    let rtt = scalable_rtt_ms(dualpi2());
    assert!((40.0..41.3).contains(&rtt), "dualpi2: {rtt} ms");
    let control = scalable_rtt_ms(Queue::Fifo {});
    assert!(control > 100.0, "fifo: {control} ms");
}

#[test]
fn a_flow_with_ecn_is_marked_and_loses_nothing() {
    let with = |ecn: bool| {
        let mut experiment = cubic_flows(1, codel(true));
        experiment.flows[0].ecn = ecn;
        let rows = run(&experiment);
        let queue = rows.queue.iter().rev().find(|row| row.link == "forward").expect("a row").clone();
        (queue, rows.flows[0].retransmits.expect("sim counts them"))
    };
    let (queue, retransmits) = with(true);
    assert!(queue.marked_packets > 5, "{} marks", queue.marked_packets);
    assert_eq!((queue.dropped_packets, retransmits), (0, 0));
    let (control, retransmits) = with(false);
    assert_eq!(control.marked_packets, 0);
    assert!(control.dropped_packets > 5 && retransmits > 5);
}
