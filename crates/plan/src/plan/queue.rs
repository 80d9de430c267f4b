//! Queue disciplines with their parameters, under names from tc(8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_units::{Bytes, Probability, Rate, Span};

/// Queue disciplines with their parameters. The limit of each is the link's buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queue {
    /// First in, first out; a packet that does not fit is dropped.
    Fifo {},
    /// Controlled delay (RFC 8289).
    Codel {
        /// Acceptable standing delay.
        target_ns: Span,
        /// Window in which the delay must fall below the target.
        interval_ns: Span,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
        /// Sojourn time above which ECN-capable packets are marked; null: none are marked.
        ce_threshold_ns: Option<Span>,
    },
    /// Flow queuing with CoDel (RFC 8290).
    FqCodel {
        /// Number of sub-queues that flows are hashed to.
        flows: u32,
        /// Bytes that a sub-queue may send per round.
        quantum_bytes: Bytes,
        /// Limit of all packets together.
        memory_limit_bytes: Bytes,
        /// Maximum number of packets dropped at once from the largest sub-queue when the limit is exceeded.
        drop_batch: u32,
        /// Acceptable standing delay of a sub-queue.
        target_ns: Span,
        /// Window in which the delay must fall below the target.
        interval_ns: Span,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
        /// Sojourn time above which ECN-capable packets are marked; null: none are marked.
        ce_threshold_ns: Option<Span>,
    },
    /// Proportional integral controller enhanced (RFC 8033).
    Pie {
        /// Target delay of the controller.
        target_ns: Span,
        /// Interval between two updates of the drop probability.
        tupdate_ns: Span,
        /// Weight of the deviation from the target, in sixteenths of 1/s.
        alpha: u32,
        /// Weight of the change of the delay, in sixteenths of 1/s.
        beta: u32,
        /// Whether ECN-capable packets are marked instead of dropped while the drop probability is at most 10 %.
        ecn: bool,
    },
    /// Flow queuing with PIE.
    FqPie {
        /// Number of sub-queues that flows are hashed to.
        flows: u32,
        /// Bytes that a sub-queue may send per round.
        quantum_bytes: Bytes,
        /// Limit of all packets together.
        memory_limit_bytes: Bytes,
        /// Target delay of the controller of a sub-queue.
        target_ns: Span,
        /// Interval between two updates of the drop probabilities.
        tupdate_ns: Span,
        /// Weight of the deviation from the target, in sixteenths of 1/s.
        alpha: u32,
        /// Weight of the change of the delay, in sixteenths of 1/s.
        beta: u32,
        /// Whether ECN-capable packets are marked instead of dropped while the drop probability is at most `ecn_prob`.
        ecn: bool,
        /// Drop probability up to which packets are marked, in percent.
        ecn_prob: u32,
    },
    /// Random early detection (Floyd and Jacobson, 1993).
    Red {
        /// Average queue length at which marking or dropping begins.
        min_bytes: Bytes,
        /// Average queue length at which every packet is marked or dropped.
        max_bytes: Bytes,
        /// Average size of a packet.
        avpkt_bytes: Bytes,
        /// Number of packets of a tolerated burst; it sets the weight of the average.
        burst: u32,
        /// Probability at `max_bytes`.
        probability: Probability,
        /// Rate at which the average decays while the queue is idle.
        bandwidth_bps: Rate,
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool,
    },
    /// Fair queuing by flow, without its pacing: packets that a router forwards have no socket.
    Fq {
        /// Maximum number of packets of a flow.
        flow_limit: u32,
        /// Bytes that a flow may send per round.
        quantum_bytes: Bytes,
        /// Bytes that a new flow may send in its first round.
        initial_quantum_bytes: Bytes,
        /// Sojourn time above which ECN-capable packets are marked; null: none are marked.
        ce_threshold_ns: Option<Span>,
    },
    /// Dual-queue coupled AQM (RFC 9332) with PI2.
    Dualpi2 {
        /// Target delay of the controller for the classic queue.
        target_ns: Span,
        /// Interval between two updates of the base probability.
        tupdate_ns: Span,
        /// Weight of the deviation from the target, in 1/s.
        alpha: f64,
        /// Weight of the change of the delay, in 1/s.
        beta: f64,
        /// Sojourn time above which every packet of the L queue is marked.
        step_thresh_ns: Span,
        /// Ratio between the marking probability of the L queue and the square root of the classic drop probability.
        coupling_factor: u32,
        /// Share of the capacity that the classic queue is guaranteed while the L queue is busy, in percent.
        classic_protection: u32,
    },
    /// Common applications kept enhanced; real engines only.
    Cake {
        /// Round-trip time that its AQM is tuned for.
        rtt_ns: Span,
    },
}

impl Queue {
    /// Name as tc(8) and scenarios write it.
    pub fn name(&self) -> &'static str {
        match self {
            Queue::Fifo {} => "fifo",
            Queue::Codel { .. } => "codel",
            Queue::FqCodel { .. } => "fq_codel",
            Queue::Pie { .. } => "pie",
            Queue::FqPie { .. } => "fq_pie",
            Queue::Red { .. } => "red",
            Queue::Fq { .. } => "fq",
            Queue::Dualpi2 { .. } => "dualpi2",
            Queue::Cake { .. } => "cake",
        }
    }
}
