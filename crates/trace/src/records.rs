//! The table of records: the connections of live servers. It is not part of a run directory: `thalweg-agent record`
//! writes it into its own folder, and importers create it from other logs.

use crate::row::{Row, Table, table};
use std::rc::Rc;

/// The table of records, in the form of [`TABLES`](crate::TABLES).
pub const RECORDS: &[&Table] = &[RecordRow::TABLE];

table! {
    /// A span of one connection: all of it, its part so far, or one transfer within it.
    RecordRow in "records" {
        /// End of the span: UNIX time.
        key: end_us: u64,
        /// Identifier of the connection: the kernel's socket cookie, unique until the machine reboots; for imported
        /// rows, the log's number, a hash or a line number.
        key: connection: u64,
        /// close (the whole connection, once it has closed), interim (the connection so far; its next close or interim
        /// row replaces this one) or transfer (one object sent).
        key: kind: &'static str,
        /// Number of the transfer within the connection, from 0; empty: the row is not a transfer.
        key: transfer: Option<u64>,
        /// Source of the row: agent, or the log that it was imported from: nginx, varnish, csv, json, haproxy, iperf3,
        /// ndt or ss.
        : source: &'static str,
        /// Host name of the machine.
        : machine: Option<Rc<str>>,
        /// Start of the span: UNIX time.
        : start_us: Option<u64>,
        /// end_us - start_us by a monotonic clock, so that steps of the wall clock do not change it.
        : duration_us: Option<u64>,
        /// Whether the connection was open before recording began. Times and round-trip times then count from the start
        /// of recording, and the kernel's own counters from the opening.
        : joined: Option<bool>,
        /// Sampling ratio: one in this number of connections is recorded; also the weight of the row.
        : sampled_one_in: Option<u64>,
        /// 4 or 6; IPv4 on an IPv6 socket (v4-mapped) is 4.
        : ip_version: Option<u64>,
        /// The local address: whole (192.0.2.7), truncated (192.0.2.0/24, 2001:db8:1::/48) or hashed (h: and 16 hex
        /// digits).
        : local_address: Option<Rc<str>>,
        /// The local port.
        : local_port: Option<u64>,
        /// The peer's address, in the form of local_address.
        : remote_address: Option<Rc<str>>,
        /// The peer's port; empty unless direction is out or addresses are whole.
        : remote_port: Option<u64>,
        /// in (the peer opened it) or out; empty: it was open before recording began.
        : direction: Option<&'static str>,
        /// Network namespace: its inode, as lsns shows it.
        : netns: Option<u64>,
        /// cgroup of the socket, as a path below the root of cgroup v2; / is the root.
        : cgroup: Option<Rc<str>>,
        /// Congestion control when the connection was established.
        : cc_at_open: Option<Rc<str>>,
        /// Congestion control at the end of the span.
        : cc: Option<Rc<str>>,
        /// How its algorithm was chosen, if `thalweg-agent tune` was running: treated (drawn by the policy's
        /// probabilities), held_out (it kept the default, for comparison) or untouched (see untouched_because); else
        /// empty.
        : assignment: Option<&'static str>,
        /// The reason why a connection is untouched: application (it, or another program, set TCP_CONGESTION), route
        /// (`congctl`), loopback, private or link_local (the peer's address), keep or override (an override in the
        /// settings excludes the connection, or sets its algorithm), refused (the kernel did not set the algorithm) or
        /// no_chances (its network namespace is unknown or its default is not among the algorithms); else empty.
        : untouched_because: Option<&'static str>,
        /// The algorithm that `tune` chose, or would have chosen in a dry run; for held_out connections, the default.
        : assigned_cc: Option<Rc<str>>,
        /// How the connection closed: local_fin or remote_fin (whose FIN came first), local_reset, remote_reset,
        /// timeout, or unseen (its close was not observed).
        : close: Option<&'static str>,
        /// Payload bytes sent, retransmissions included.
        : sent_bytes: Option<u64>,
        /// Payload bytes acknowledged.
        : acked_bytes: Option<u64>,
        /// Payload bytes received in order.
        : received_bytes: Option<u64>,
        /// Payload bytes of retransmissions.
        : retransmitted_bytes: Option<u64>,
        /// Data segments sent, retransmissions included.
        : segments: Option<u64>,
        /// Segments that were retransmissions.
        : retransmits: Option<u64>,
        /// Segments sent, including those without payload.
        : segments_out: Option<u64>,
        /// Segments received, including those without payload.
        : segments_in: Option<u64>,
        /// Packets that the sender marked as lost, over the life of the connection.
        : lost_packets: Option<u64>,
        /// Maximum reordering detected on the path, in packets; 3 is the kernel's initial value.
        : reordering: Option<u64>,
        /// Number of times that reordering was detected.
        : reorderings: Option<u64>,
        /// Whether both ends agreed on ECN.
        : ecn: Option<bool>,
        /// Packets delivered with a congestion mark (ECN).
        : ce_packets: Option<u64>,
        /// Largest payload of a segment sent.
        : mss_bytes: Option<u64>,
        /// Round-trip time of the handshake.
        : rtt_handshake_us: Option<u64>,
        /// Smallest round-trip time.
        : rtt_min_us: Option<u64>,
        /// Smoothed round-trip time at the end of the span.
        : rtt_smoothed_us: Option<u64>,
        /// 95th percentile of the round-trip times sampled, with at most one sample per round trip.
        : rtt_p95_us: Option<u64>,
        /// Largest round-trip time sampled.
        : rtt_max_us: Option<u64>,
        /// Last delivery-rate sample.
        : delivery_rate_bps: Option<u64>,
        /// Whether the application, not the path, limited that sample.
        : delivery_rate_app_limited: Option<bool>,
        /// Largest delivery-rate sample that was not limited by the application; empty: there was none.
        : delivery_rate_max_bps: Option<u64>,
        /// Time with unacknowledged or unsent data. The kernel counts it in jiffies: in steps of 1 to 10 ms.
        : busy_us: Option<u64>,
        /// Part of busy_us in which the peer's receive window limited sending; also counted in jiffies.
        : rwnd_limited_us: Option<u64>,
        /// Part of busy_us in which the local send buffer limited sending; also counted in jiffies.
        : sndbuf_limited_us: Option<u64>,
        /// Share of the round-trip samples that the application limited, from 0 to 1.
        : app_limited_share: Option<f64>,
        /// 8 acked_bytes / busy_us, in bits per second; empty: it was busy for less than two jiffies.
        : busy_goodput_bps: Option<f64>,
        /// Payload bytes acknowledged within 1 s of the opening; empty: open for less, or joined.
        : acked_1s_bytes: Option<u64>,
        /// Payload bytes acknowledged within 3 s of the opening; empty: open for less, or joined.
        : acked_3s_bytes: Option<u64>,
        /// Payload bytes acknowledged within 10 s of the opening; empty: open for less, or joined.
        : acked_10s_bytes: Option<u64>,
        /// Payload bytes acknowledged within 30 s of the opening; empty: open for less, or joined.
        : acked_30s_bytes: Option<u64>,
        /// BBR's estimate of the bandwidth; empty: no estimate.
        : bbr_bw_bps: Option<u64>,
        /// BBR's estimate of the smallest round-trip time; empty: no estimate.
        : bbr_min_rtt_us: Option<u64>,
        /// Whether BBR was short of CPU because its machine was off CPU; empty: another congestion control, or too few
        /// samples to decide.
        : cpu_limited: Option<bool>,
        /// (rtt_max_us - rtt_min_us) / rtt_min_us: a lower bound of the depth of the path's queue, in BDP.
        : buffer_bdp: Option<f64>,
        /// Completion time of a transfer, from its first byte queued to its last one acknowledged; empty: the row is
        /// not a transfer, the transfer did not end, or the application set its pace.
        : fct_us: Option<u64>,
        /// 8 acked_bytes / fct_us, in bits per second; empty if fct_us is empty.
        : goodput_bps: Option<f64>,
    }
}
