//! Queue disciplines as a scenario names them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue discipline by name, or a table with its parameters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Queue {
    /// With Linux's default parameters.
    Name(QueueName),
    /// With parameters.
    Table(Box<QueueTable>),
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Name(QueueName::Fifo)
    }
}

/// Queue disciplines.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueName {
    /// First in, first out; a packet that does not fit is dropped.
    Fifo,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Flow queuing with CoDel (RFC 8290).
    FqCodel,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Flow queuing with PIE.
    FqPie,
    /// Random early detection (Floyd and Jacobson, 1993).
    Red,
    /// Fair queuing by flow.
    Fq,
    /// Dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332).
    Dualpi2,
    /// Common applications kept enhanced (Høiland-Jørgensen et al., 2018).
    Cake,
}

/// A queue discipline with parameters: tc's names, and Linux's defaults for those that are missing.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueTable {
    /// The discipline.
    pub name: QueueName,
    /// Limit of the queue, in packets; of red in bytes. Default: path.buffer if it is set, else Linux's default: 1000
    /// packets (codel, pie), 10240 (fq_codel, fq_pie), 10000 (fq, dualpi2); cake has 10240 packets, and red
    /// path.buffer's default.
    #[schemars(range(min = 1, max = 4_294_967_295u64))]
    pub limit: Option<u64>,
    /// Acceptable standing delay: 5 ms (codel, fq_codel), or the delay that the controller holds: 15 ms (pie, fq_pie,
    /// dualpi2).
    #[schemars(extend("format" = "time"))]
    pub target: Option<String>,
    /// Window in which the delay must fall below the target: 100 ms (codel, fq_codel).
    #[schemars(extend("format" = "time"))]
    pub interval: Option<String>,
    /// Number of sub-queues that flows are hashed to: 1024 (fq_codel, fq_pie).
    #[schemars(range(min = 1, max = 65_536))]
    pub flows: Option<u32>,
    /// Bytes that a sub-queue or flow may send per round: 1514 (fq_codel, fq_pie), 3028 (fq).
    #[schemars(extend("format" = "size"))]
    pub quantum: Option<String>,
    /// Bytes that a new flow may send in its first round: 15140 (fq).
    #[schemars(extend("format" = "size"))]
    pub initial_quantum: Option<String>,
    /// Maximum number of packets of a flow: 100 (fq).
    #[schemars(range(min = 1))]
    pub flow_limit: Option<u32>,
    /// Limit of the memory of all packets: 32 MiB (fq_codel, fq_pie).
    #[schemars(extend("format" = "size"))]
    pub memory_limit: Option<String>,
    /// Maximum number of packets dropped at once from the largest sub-queue: 64 (fq_codel).
    #[schemars(range(min = 1))]
    pub drop_batch: Option<u32>,
    /// Whether ECN-capable packets are marked instead of dropped: as in Linux, true for fq_codel and false for the
    /// others.
    pub ecn: Option<bool>,
    /// Sojourn time above which ECN-capable packets are marked. Default: none (codel, fq_codel, fq).
    #[schemars(extend("format" = "time"))]
    pub ce_threshold: Option<String>,
    /// Drop probability up to which packets are marked, in percent: 10 (fq_pie).
    #[schemars(range(max = 100))]
    pub ecn_prob: Option<u32>,
    /// Average queue length at which marking or dropping begins: a third of max (red).
    #[schemars(extend("format" = "size"))]
    pub min: Option<String>,
    /// Average queue length at which every packet is marked or dropped: three times min if that is set, else a quarter
    /// of the limit (red).
    #[schemars(extend("format" = "size"))]
    pub max: Option<String>,
    /// Average size of a packet: 1000 bytes (red).
    #[schemars(extend("format" = "size"))]
    pub avpkt: Option<String>,
    /// Number of packets of a tolerated burst: (2 min + max) / (3 avpkt) (red).
    #[schemars(range(min = 1))]
    pub burst: Option<u32>,
    /// Probability at max: 0.02 (red).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: Option<f64>,
    /// Interval between two updates of the drop probability: 15 ms (pie, fq_pie), 16 ms (dualpi2).
    #[schemars(extend("format" = "time"))]
    pub tupdate: Option<String>,
    /// Weight of the deviation from the target: 2 sixteenths of 1/s (pie, fq_pie), 0.16 1/s (dualpi2).
    #[schemars(range(min = 0.0, max = 256.0))]
    pub alpha: Option<f64>,
    /// Weight of the change of the delay: 20 sixteenths of 1/s (pie, fq_pie), 3.2 1/s (dualpi2).
    #[schemars(range(min = 0.0, max = 256.0))]
    pub beta: Option<f64>,
    /// Sojourn time above which every packet of the L queue is marked: 1 ms (dualpi2).
    #[schemars(extend("format" = "time"))]
    pub step_thresh: Option<String>,
    /// Ratio between the marking probability of the L queue and the square root of the classic drop probability: 2
    /// (dualpi2).
    #[schemars(range(min = 1, max = 255))]
    pub coupling_factor: Option<u32>,
    /// Share of the capacity that the classic queue is guaranteed, in percent: 10 (dualpi2).
    #[schemars(range(max = 100))]
    pub classic_protection: Option<u32>,
    /// Round-trip time that the AQM is tuned for: 100 ms (cake).
    #[schemars(extend("format" = "time"))]
    pub rtt: Option<String>,
}
