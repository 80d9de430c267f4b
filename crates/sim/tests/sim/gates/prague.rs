//! Tests of Prague over dualpi2: the guarantees of L4S, with controls that have a queue or a sender without L4S.
//!
//! Sources: RFC 9332, section 1 (the L queue has a delay of less than a millisecond, at full utilisation) and 2.1 (the
//! coupling balances the windows of scalable and classic flows roughly); RFC 9331, section 4.3, and
//! draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4 (rates depend little on round-trip times below 25
//! ms).

use crate::gates::PAYLOAD;
use crate::support::{bulk, dualpi2, of, run};
use thalweg_plan::plan::{Experiment, Queue};
use thalweg_trace::Memory;
use thalweg_units::{Rate, Span};

const RATE: Rate = Rate::from_mbps(50);
const SECONDS: u64 = 30;

/// Time in microseconds after which slow start is over, as are, on paths of up to 25 ms, the 500 rounds until Prague
/// reduces its dependence on the round-trip time.
const SETTLED_US: u64 = 15_000_000;

fn pie() -> Queue {
    let (target_ns, tupdate_ns) = (Span::from_millis(15), Span::from_millis(15));
    Queue::Pie { target_ns, tupdate_ns, alpha: 2, beta: 20, ecn: true }
}

fn path(rtt: Span, queue: Queue, ccs: &[&str]) -> Experiment {
    let mut experiment = bulk(RATE, rtt, 8.0, ccs, SECONDS);
    experiment.forward.queue = queue;
    for flow in &mut experiment.flows {
        flow.ecn = true;
        if flow.cc == "dctcp" {
            flow.cc_params.insert("ect1".to_owned(), 1.0);
        }
    }
    experiment
}

fn settled_rate(rows: &Memory, flow: &str) -> f64 {
    let settled: Vec<_> = rows.samples.iter().filter(|row| &*row.flow == flow && row.t_us >= SETTLED_US).collect();
    let (first, last) = (settled[0], settled[settled.len() - 1]);
    (last.acked_bytes - first.acked_bytes) as f64 * 8e6 / (last.t_us - first.t_us) as f64
}

/// Returns the mean sojourn time in ms of the packets that left the queue from [`SETTLED_US`] on.
fn mean_sojourn_ms(rows: &Memory) -> f64 {
    let mut settled = rows.queue.iter().filter(|row| row.link == "forward" && row.t_us >= SETTLED_US);
    let (first, last) = (settled.next().expect("a sample"), settled.next_back().expect("a sample"));
    let sojourn_us = last.sojourn_sum_us.expect("measured") - first.sojourn_sum_us.expect("measured");
    sojourn_us as f64 / (last.sent_packets - first.sent_packets) as f64 / 1000.0
}

fn alone(rtt_ms: u64, cc: &str, queue: Queue) -> (f64, f64) {
    let rows = run(&path(Span::from_millis(rtt_ms), queue.clone(), &[cc]));
    let used = settled_rate(&rows, &format!("{cc}-0")) / RATE.0 as f64 / PAYLOAD;
    let sojourn = mean_sojourn_ms(&rows);
    println!("prague: {cc} alone, {rtt_ms} ms, {}: {used:.3} full, {sojourn:.2} ms", queue.name());
    (used, sojourn)
}

#[test]
fn a_single_prague_flow_fills_the_link_with_less_than_a_millisecond_of_queue() {
    for rtt_ms in [5, 10, 25, 50] {
        let (used, sojourn) = alone(rtt_ms, "prague", dualpi2());
        assert!(used > 0.9 && sojourn < 1.0);
    }
    // Controls: the same sender without marks, and a sender that is not scalable in the same queue.
    assert!(alone(25, "prague", Queue::Fifo {}).1 > 50.0);
    assert!(alone(25, "cubic", dualpi2()).1 > 5.0);
}

/// Returns the ratio between the windows of a Prague flow and a competing CUBIC flow. A window is the rate times the
/// round-trip time, which is longer in the classic queue; for Prague, it is at least 25 ms.
fn window_balance(rtt_ms: u64, queue: Queue) -> f64 {
    let rows = run(&path(Span::from_millis(rtt_ms), queue.clone(), &["prague", "cubic"]));
    let rtt_us = |flow: &str| of(&rows, flow)[0].rtt_p50_us.expect("RTT samples");
    let ratio = settled_rate(&rows, "prague-0") * rtt_us("prague-0").max(25_000.0)
        / (settled_rate(&rows, "cubic-1") * rtt_us("cubic-1"));
    println!("prague: window over CUBIC's, {rtt_ms} ms, {}: {ratio:.2}", queue.name());
    ratio
}

#[test]
fn prague_has_about_the_window_of_cubic_only_with_coupled_queues() {
    for rtt_ms in [10, 25, 50] {
        assert!((0.5..2.0).contains(&window_balance(rtt_ms, dualpi2())));
        // Control: a single queue that marks both flows.
        assert!(window_balance(rtt_ms, pie()) > 2.5);
    }
}

fn short_over_long(cc: &str, params: &[(&str, f64)]) -> f64 {
    let mut experiment = path(Span::from_millis(5), dualpi2(), &[cc, cc]);
    experiment.flows[1].extra_rtt_ns = Span::from_millis(20);
    for flow in &mut experiment.flows {
        flow.cc_params.extend(params.iter().map(|(key, value)| ((*key).to_owned(), *value)));
    }
    let rows = run(&experiment);
    let ratio = settled_rate(&rows, &format!("{cc}-0")) / settled_rate(&rows, &format!("{cc}-1"));
    println!("prague: {cc} {params:?}, 5 ms over 25 ms: {ratio:.2}");
    ratio
}

#[test]
fn prague_depends_less_on_the_round_trip_time_than_dctcp() {
    assert!((0.67..1.5).contains(&short_over_long("prague", &[])));
    // Controls: Prague without reduced RTT dependence, and DCTCP.
    assert!(short_over_long("prague", &[("rtt_virt_min_ms", 0.0)]) > 2.0);
    assert!(short_over_long("dctcp", &[]) > 2.0);
}
