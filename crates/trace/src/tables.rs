//! The tables.

use crate::row::{Row, Table, table};
use std::sync::Arc;

/// Every table, in the order of the reference page.
pub const TABLES: &[&Table] = &[FlowRow::TABLE, SampleRow::TABLE, StateRow::TABLE, QueueRow::TABLE, PacketRow::TABLE];

table! {
    /// One row per transfer.
    FlowRow in "flows" {
        /// Number of the sweep point.
        key: experiment: u64,
        /// Number of the repetition.
        key: repetition: u64,
        /// Name of the flow.
        key: flow: Arc<str>,
        /// Number of the parallel copy, from 0.
        key: copy: u64,
        /// Number of the connection within the copy, from 0.
        key: connection: u64,
        /// Number of the transfer within the connection, from 0.
        key: transfer: u64,
        /// Congestion control.
        : cc: Arc<str>,
        /// The flow's host: it sends the data of a down flow, and receives that of an up flow; the other end is
        /// `receiver`.
        : host: Arc<str>,
        /// Direction of the data: down (through path) or up (through path.reverse); the column is absent if no flow
        /// goes up.
        : direction: Option<&'static str>,
        /// Bytes to transfer; empty: unlimited, or programs without `size`.
        : size_bytes: Option<u64>,
        /// Start: the connection's SYN, or the request on an open connection; for programs the first packet.
        : start_us: u64,
        /// Time at which its last byte was acknowledged, or it ended incomplete; for programs, time at which the last
        /// payload left the path.
        : end_us: u64,
        /// Whether all its bytes were acknowledged; for programs, whether the client exited with status 0.
        : completed: bool,
        /// Completion time: end_us - start_us; empty if it was not completed.
        : fct_us: Option<u64>,
        /// Payload bytes acknowledged; for programs, those that left the path: for TCP each byte once, for UDP every
        /// payload byte.
        : acked_bytes: u64,
        /// acked_bytes over the time from start to end, in bits per second.
        : goodput_bps: f64,
        /// Data segments sent, retransmissions included; for programs, packets with payload that entered the path.
        : segments: u64,
        /// Data segments that were retransmissions; empty: UDP of programs, whose retransmissions cannot be identified.
        : retransmits: Option<u64>,
        /// Retransmission timeouts; empty: the engine cannot count them.
        : timeouts: Option<u64>,
        /// Number of fast recoveries; empty: the engine cannot count them.
        : recoveries: Option<u64>,
        /// Number of reductions of cwnd that were undone because nothing had been lost; empty: the engine cannot count
        /// them.
        : undos: Option<u64>,
        /// Data segments delivered whose acknowledgement reported congestion (CE); empty: the engine cannot read it.
        : marked_segments: Option<u64>,
        /// Smallest round-trip time sampled.
        : rtt_min_us: Option<f64>,
        /// Mean of the round-trip times sampled; on real kernels, of smoothed ones.
        : rtt_mean_us: Option<f64>,
        /// Median of the round-trip times sampled, to 1 %.
        : rtt_p50_us: Option<f64>,
        /// 95th percentile of the round-trip times sampled, to 1 %.
        : rtt_p95_us: Option<f64>,
        /// 99th percentile of the round-trip times sampled, to 1 %.
        : rtt_p99_us: Option<f64>,
        /// Number of the segment, page, frame or message, from 0; only where a flow has an app.
        : item: Option<u64>,
        /// Bitrate of the video segment; only where a flow has an app.
        : bitrate_bps: Option<u64>,
        /// Time for which playback stalled because of it (video, call); only where a flow has an app.
        : stall_us: Option<u64>,
        /// Packets of the sender of data that entered the path and never left it. This column and the following three
        /// are absent where no flow has programs.
        : lost_packets: Option<u64>,
        /// Smallest one-way delay on the path of packets of the sender of data.
        : delay_min_us: Option<f64>,
        /// Mean of these delays.
        : delay_mean_us: Option<f64>,
        /// 95th percentile of these delays, to 1 %, on the connection with the most data.
        : delay_p95_us: Option<f64>,
        /// The reason why the experiment is untrustworthy; empty: the engine has found none.
        : untrustworthy: Option<Arc<str>>,
    }
}

table! {
    /// A connection at one moment.
    SampleRow in "samples" {
        /// Number of the sweep point.
        key: experiment: u64,
        /// Number of the repetition.
        key: repetition: u64,
        /// Name of the flow.
        key: flow: Arc<str>,
        /// Number of the parallel copy, from 0.
        key: copy: u64,
        /// Number of the connection within the copy, from 0.
        key: connection: u64,
        /// Time of the sample.
        key: t_us: u64,
        /// Congestion window; empty: packets of programs do not show it. With qlog, bytes divided by the largest
        /// payload.
        : cwnd_packets: Option<u64>,
        /// Slow-start threshold; empty: unset, or as for cwnd_packets.
        : ssthresh_packets: Option<u64>,
        /// Segments sent, and neither acknowledged nor marked as lost; empty: as for cwnd_packets.
        : inflight_packets: Option<u64>,
        /// Pacing rate; empty: not paced, or programs.
        : pacing_rate_bps: Option<u64>,
        /// Latest delivery-rate sample. If the application limited it: the previous one if that is higher (simulator),
        /// or empty (real kernels). For programs, payload delivered since the previous sample.
        : delivery_rate_bps: Option<u64>,
        /// Smoothed round-trip time.
        : srtt_us: Option<u64>,
        /// Smallest round-trip time on this connection in the last five minutes; for programs, as their qlog reports
        /// it.
        : min_rtt_us: Option<u64>,
        /// Payload bytes acknowledged so far on this connection; for programs, as in flows.
        : acked_bytes: u64,
        /// Data segments sent so far, retransmissions included.
        : segments: u64,
        /// Data segments retransmitted so far; empty: UDP of programs.
        : retransmits: Option<u64>,
        /// Data segments delivered so far whose acknowledgement reported congestion (CE); empty: the engine cannot read
        /// it.
        : marked_segments: Option<u64>,
        /// State of loss recovery: open, disorder, cwr, recovery or loss; empty: programs.
        : ca_state: Option<&'static str>,
        /// Mean one-way delay on the path of packets delivered since the previous sample; empty: no program, or no
        /// packet. The column is absent where no flow has programs.
        : delay_us: Option<f64>,
    }
}

table! {
    /// An internal value of a congestion control: at its connection's first sample, and at each sample at which it has
    /// changed. It holds until the next row.
    StateRow in "state" {
        /// Number of the sweep point.
        key: experiment: u64,
        /// Number of the repetition.
        key: repetition: u64,
        /// Name of the flow.
        key: flow: Arc<str>,
        /// Number of the parallel copy, from 0.
        key: copy: u64,
        /// Number of the connection within the copy, from 0.
        key: connection: u64,
        /// Time of the sample.
        key: t_us: u64,
        /// Name of the value, such as pacing_gain.
        key: key: &'static str,
        /// The value.
        : value: f64,
    }
}

table! {
    /// A direction of the path at one moment.
    QueueRow in "queue" {
        /// Number of the sweep point.
        key: experiment: u64,
        /// Number of the repetition.
        key: repetition: u64,
        /// Link: forward (path, which data of flows that go down takes) or reverse (path.reverse, data of flows that go
        /// up).
        key: link: &'static str,
        /// Time of the sample.
        key: t_us: u64,
        /// Bytes in the queue, excluding the packet being sent.
        : backlog_bytes: u64,
        /// Packets in the queue, excluding the packet being sent.
        : backlog_packets: u64,
        /// Packets dropped so far by the queue, for any reason.
        : dropped_packets: u64,
        /// Of these, packets dropped by the queue discipline below its limit; empty: the engine cannot distinguish
        /// them.
        : early_drops: Option<u64>,
        /// Packets dropped so far by the policer; empty: the engine cannot count them.
        : policed_packets: Option<u64>,
        /// Packets lost so far at random.
        : lost_packets: u64,
        /// Packets marked so far by the queue (ECN).
        : marked_packets: u64,
        /// Packets sent so far.
        : sent_packets: u64,
        /// Bytes sent so far.
        : sent_bytes: u64,
        /// Sojourn time of all packets that have left the queue so far, summed; empty: the engine cannot measure it.
        : sojourn_sum_us: Option<u64>,
        /// Bytes that the link could have carried so far; empty: without limit.
        : capacity_bytes: Option<u64>,
    }
}

table! {
    /// A packet offered to the path, if the scenario sets `engine.record`.
    PacketRow in "packets" {
        /// Number of the sweep point.
        key: experiment: u64,
        /// Number of the repetition.
        key: repetition: u64,
        /// Link: forward (path, which data of flows that go down takes) or reverse (path.reverse, data of flows that go
        /// up).
        key: link: &'static str,
        /// Time at which it was offered.
        key: t_us: u64,
        /// Number of the packet in its direction, from 0.
        key: number: u64,
        /// Outcome: queued, dropped (by the queue), lost (at random) or policed.
        : fate: &'static str,
        /// Size, IP header included.
        : size_bytes: u64,
        /// Bytes in the queue after it, excluding the packet being sent.
        : backlog_bytes: u64,
        /// Reason for its drop: random, policed, full (the queue's limit was reached) or early (the queue discipline
        /// dropped it below the limit); empty: it was not dropped, or the engine cannot determine it.
        : cause: Option<&'static str>,
        /// Time in the queue; empty: it has not left the queue, or the engine cannot measure it.
        : sojourn_us: Option<u64>,
        /// Whether the queue has set its ECN field to CE; empty: it has not left the queue, or the engine cannot
        /// determine it.
        : marked: Option<bool>,
    }
}
