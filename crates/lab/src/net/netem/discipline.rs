//! Formats queue disciplines of the plan for `tc`.
//!
//! Source: tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8), tc-red(8), tc-fq(8), tc-cake(8), tc-dualpi2(8) of
//! iproute2 6.1 to 6.17.

use super::words::time;
use thalweg_plan::plan::{Buffer, Queue};
use thalweg_units::{Bytes, MTU, Packets, Span};

/// Bytes per packet for converting a buffer in packets to cake's memory limit: an Ethernet frame.
const FRAME_BYTES: u64 = 1514;

/// Returns the name and parameters of a discipline whose limit is `buffer`, at least one packet.
pub(super) fn words(queue: &Queue, buffer: Buffer) -> String {
    match queue {
        Queue::Fifo {} => match buffer {
            Buffer::Bytes { bytes } => format!("bfifo limit {}", bytes.0.max(MTU.0)),
            Buffer::Packets { packets } => format!("pfifo limit {}", packets.0.max(1)),
        },
        Queue::Red { .. } => red(queue, buffer),
        Queue::Cake { rtt_ns } => {
            let memory = match buffer {
                Buffer::Bytes { bytes } => bytes.0.max(FRAME_BYTES),
                Buffer::Packets { packets } => packets.0.max(1).saturating_mul(FRAME_BYTES),
            };
            // `tc` parses `memlimit` as a 32-bit number.
            format!("cake unlimited memlimit {} rtt {}", memory.min(u64::from(u32::MAX)), time(*rtt_ns))
        }
        _ => format!("{} limit {} {}", queue.name(), packets(buffer), parameters(queue)),
    }
}

/// Returns the limit of disciplines that count packets.
fn packets(buffer: Buffer) -> u64 {
    match buffer {
        Buffer::Bytes { bytes: Bytes(bytes) } => (bytes / MTU.0).max(1),
        Buffer::Packets { packets: Packets(packets) } => packets.max(1),
    }
}

/// Returns the parameters of disciplines that count packets, except the limit.
fn parameters(queue: &Queue) -> String {
    match queue {
        Queue::Codel { target_ns, interval_ns, ecn, ce_threshold_ns } => format!(
            "target {} interval {} {}{}",
            time(*target_ns),
            time(*interval_ns),
            marking(*ecn),
            ce_threshold(*ce_threshold_ns)
        ),
        Queue::FqCodel { flows, quantum_bytes, memory_limit_bytes, drop_batch, target_ns, interval_ns, .. } => format!(
            "flows {flows} quantum {} target {} interval {} memory_limit {} drop_batch {drop_batch} {}",
            quantum_bytes.0,
            time(*target_ns),
            time(*interval_ns),
            memory_limit_bytes.0,
            fq_codel_marking(queue)
        ),
        Queue::Pie { target_ns, tupdate_ns, alpha, beta, ecn } => format!(
            "target {} tupdate {} alpha {alpha} beta {beta} {}",
            time(*target_ns),
            time(*tupdate_ns),
            marking(*ecn)
        ),
        Queue::FqPie {
            flows,
            quantum_bytes,
            memory_limit_bytes,
            target_ns,
            tupdate_ns,
            alpha,
            beta,
            ecn,
            ecn_prob,
        } => {
            format!(
                "flows {flows} target {} tupdate {} alpha {alpha} beta {beta} quantum {} memory_limit {} ecn_prob \
                 {ecn_prob} {}",
                time(*target_ns),
                time(*tupdate_ns),
                quantum_bytes.0,
                memory_limit_bytes.0,
                marking(*ecn)
            )
        }
        Queue::Fq { flow_limit, quantum_bytes, initial_quantum_bytes, ce_threshold_ns } => format!(
            "flow_limit {flow_limit} quantum {} initial_quantum {} nopacing{}",
            quantum_bytes.0,
            initial_quantum_bytes.0,
            ce_threshold(*ce_threshold_ns)
        ),
        Queue::Dualpi2 { .. } => dualpi2(queue),
        Queue::Fifo {} | Queue::Red { .. } | Queue::Cake { .. } => String::new(),
    }
}

fn dualpi2(queue: &Queue) -> String {
    let Queue::Dualpi2 { target_ns, tupdate_ns, alpha, beta, step_thresh_ns, coupling_factor, classic_protection } =
        queue
    else {
        return String::new();
    };
    format!(
        "target {} tupdate {} alpha {alpha} beta {beta} step_thresh {} coupling_factor {coupling_factor} \
         classic_protection {classic_protection}",
        time(*target_ns),
        time(*tupdate_ns),
        time(*step_thresh_ns)
    )
}

/// Returns the parameters of RED, which has a limit in bytes, and lacks a keyword to disable marking.
fn red(queue: &Queue, buffer: Buffer) -> String {
    let Queue::Red { min_bytes, max_bytes, avpkt_bytes, burst, probability, bandwidth_bps, ecn } = queue else {
        return String::new();
    };
    let limit = match buffer {
        Buffer::Bytes { bytes } => bytes.0.max(MTU.0),
        Buffer::Packets { packets } => packets.0.max(1).saturating_mul(MTU.0),
    };
    let ecn = if *ecn { " ecn" } else { "" };
    format!(
        "red limit {limit} min {} max {} avpkt {} burst {burst} probability {} bandwidth {}bit{ecn}",
        min_bytes.0,
        max_bytes.0,
        avpkt_bytes.0,
        probability.as_f64(),
        bandwidth_bps.0
    )
}

fn fq_codel_marking(queue: &Queue) -> String {
    match queue {
        Queue::FqCodel { ecn, ce_threshold_ns, .. } => format!("{}{}", marking(*ecn), ce_threshold(*ce_threshold_ns)),
        _ => String::new(),
    }
}

fn marking(ecn: bool) -> &'static str {
    if ecn { "ecn" } else { "noecn" }
}

fn ce_threshold(threshold: Option<Span>) -> String {
    threshold.map(|threshold| format!(" ce_threshold {}", time(threshold))).unwrap_or_default()
}
