//! Tests that the outcomes in the table `packets` sum to the counters of the table `queue`.

use crate::support::{bulk, loss, run};
use thalweg_plan::plan::{Buffer, Experiment, Policer, Queue};
use thalweg_trace::{Memory, PacketRow, QueueRow};
use thalweg_units::{Bytes, Packets, Rate, Span};

const RATE: Rate = Rate::from_mbps(20);
const RTT: Span = Span::from_millis(20);

fn recorded(queue: Queue) -> Experiment {
    let mut experiment = bulk(RATE, RTT, 0.5, &["cubic"], 3);
    experiment.engine.record = true;
    experiment.forward.queue = queue;
    experiment
}

fn codel(ecn: bool) -> Experiment {
    let (target_ns, interval_ns) = (Span::from_millis(2), Span::from_millis(20));
    let mut experiment = recorded(Queue::Codel { target_ns, interval_ns, ecn, ce_threshold_ns: None });
    experiment.forward.buffer = Buffer::Packets { packets: Packets(20) };
    experiment.flows[0].ecn = ecn;
    experiment
}

fn forward(rows: &Memory) -> (Vec<&PacketRow>, &QueueRow) {
    let packets = rows.packets.iter().filter(|row| row.link == "forward").collect();
    (packets, rows.queue.iter().rfind(|row| row.link == "forward").expect("there are samples of it"))
}

fn count(packets: &[&PacketRow], fate: &str, cause: Option<&str>) -> u64 {
    packets.iter().filter(|row| row.fate == fate && row.cause == cause).count() as u64
}

#[test]
fn without_record_there_are_no_rows_and_the_other_tables_are_the_same() {
    let with = run(&codel(false));
    let mut experiment = codel(false);
    experiment.engine.record = false;
    let without = run(&experiment);
    assert!(without.packets.is_empty() && with.packets.len() > 1_000);
    assert_eq!(with.flows, without.flows);
    assert_eq!(with.queue, without.queue);
}

#[test]
fn each_packet_has_a_row_with_its_queueing_delay() {
    let rows = run(&recorded(Queue::Fifo {}));
    let (packets, queue) = forward(&rows);
    let mut numbers: Vec<u64> = packets.iter().map(|row| row.number).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "each number once");
    let waited: u64 = packets.iter().filter_map(|row| row.sojourn_us).sum();
    let total = queue.sojourn_sum_us.expect("the simulator measures it");
    assert!(total - waited <= packets.len() as u64, "{waited} of {total} us, each rounded down");
    assert!(packets.iter().all(|row| row.sojourn_us.is_some() == row.marked.is_some()));
    assert!(count(&packets, "dropped", Some("full")) > 0);
    assert_eq!(count(&packets, "dropped", Some("full")), queue.dropped_packets);
}

#[test]
fn drops_of_an_aqm_are_recorded_as_early_or_full_and_its_marks_are_recorded() {
    let rows = run(&codel(false));
    let (packets, queue) = forward(&rows);
    let early = count(&packets, "dropped", Some("early"));
    assert!(early > 0);
    assert_eq!(Some(early), queue.early_drops);
    assert_eq!(early + count(&packets, "dropped", Some("full")), queue.dropped_packets);
    assert!(packets.iter().all(|row| row.marked != Some(true)), "nothing is ECN-capable");
    let rows = run(&codel(true));
    let (packets, queue) = forward(&rows);
    let marked = packets.iter().filter(|row| row.marked == Some(true)).count() as u64;
    assert!(marked > 0);
    assert_eq!(marked, queue.marked_packets);
}

#[test]
fn random_losses_and_policer_drops_are_recorded_with_their_cause() {
    for after in [false, true] {
        let mut experiment = recorded(Queue::Fifo {});
        experiment.forward.loss = loss(0.01);
        let (rate_bps, burst_bytes) = (Rate::from_mbps(10), Bytes(20_000));
        experiment.forward.policer = Some(Policer { rate_bps, burst_bytes, after });
        let rows = run(&experiment);
        let (packets, queue) = forward(&rows);
        assert!(queue.lost_packets > 0 && queue.policed_packets > Some(0), "after = {after}");
        assert_eq!(count(&packets, "lost", Some("random")), queue.lost_packets);
        assert_eq!(Some(count(&packets, "policed", Some("policed"))), queue.policed_packets);
    }
}

#[test]
fn a_router_with_receive_offload_receives_bursts() {
    let largest = |offloads| {
        let mut experiment = recorded(Queue::Fifo {});
        experiment.forward.offloads = offloads;
        run(&experiment).packets.iter().map(|row| row.size_bytes).max()
    };
    assert_eq!(largest(false), Some(1_500));
    assert!(largest(true) > Some(3_000));
}
