//! Differences between the generations of Linux that limit a connection.
//!
//! | | 6.1 | 6.12 | 6.18 |
//! | --- | --- | --- | --- |
//! | part of the receive buffer that is window | half | payload / memory of a segment | as 6.12 |
//! | window that the receive buffer is sized for, if `c` bytes are read per round trip | 2 `c` + 16 segments, more while `c` grows | as 6.1 | 2 `c` + the span of data beyond a gap, more while `c` grows |
//! | memory of a piece in the send buffer besides its payload | 1280 bytes | 832 bytes | as 6.12 |
//! | memory of a segment that the send buffer is sized for | 4352 bytes | 4352 bytes | 2304 bytes |
//! | memory of a full segment in the receive buffer | 2728 bytes | 2408 bytes | 2304 bytes |
//! | memory of a segment that continues a run beyond a gap | as any | payload, and 960 bytes for 17 segments | as any |
//! | bytes counted as read in a round trip that fills a gap | all | all, less those still queued | all |
//! | time that a write takes per packet | none | 2 to 4 us | as 6.12 |
//!
//! The memory of a segment that the send buffer is sized for depends on the configuration of a kernel: it includes the
//! largest headers of any driver, rounded up to a power of two, and a descriptor. Kernels of distributions often round
//! up to 4096 bytes, the 6.18 kernel of the comparison to 2048 bytes.
//!
//! The values of 6.1, and the receive buffer of 6.12 (6.12.117), were compared with a kernel in virtual time, where
//! segments pass from namespace to namespace. Those of 6.18 were compared with a kernel on a real machine, where
//! segments come from a network card or the relay. The other values of 6.12 are derived from its sources.

use rand_core::Rng;
use thalweg_units::Span;

/// Memory of a socket buffer in bytes, in addition to its payload, if the payload is in fragments (6.12).
const BUFFER_OVERHEAD: u64 = 960;
/// Maximum number of fragments of a socket buffer, each a segment: MAX_SKB_FRAGS.
pub(crate) const MAX_FRAGMENTS: u64 = 17;

/// The segments that a receiver holds beyond a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Payload bytes.
    pub bytes: u64,
    /// Number of contiguous runs of segments.
    pub runs: u64,
}

impl Held {
    /// Returns the held data with `len` in-order bytes as one more run.
    pub fn with(self, len: u32) -> Held {
        Held { bytes: self.bytes + u64::from(len), runs: self.runs + 1 }
    }

    /// Subtracts `len` bytes; the number of runs stays the same.
    pub fn without(self, len: u32) -> Held {
        Held { bytes: self.bytes.saturating_sub(u64::from(len)), ..self }
    }
}

/// A generation of Linux, named after a long-term kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelGeneration {
    /// Linux 6.1, up to 6.5.
    Linux6_1,
    /// Linux 6.12, from 6.10.
    Linux6_12,
    /// Linux 6.18 and later.
    #[default]
    Linux6_18,
}

impl KernelGeneration {
    /// Returns the memory of a piece in the send buffer besides its payload, in bytes: headers and descriptors.
    pub(crate) fn piece_overhead(self) -> u64 {
        match self {
            KernelGeneration::Linux6_1 => 1280,
            // `skb_small_head_cache`, since 6.3.
            KernelGeneration::Linux6_12 | KernelGeneration::Linux6_18 => 832,
        }
    }

    /// Returns the memory per segment by which the send buffer is sized for cwnd, in bytes (`tcp_sndbuf_expand`).
    pub(crate) fn sndbuf_per_segment(self) -> u64 {
        match self {
            KernelGeneration::Linux6_1 | KernelGeneration::Linux6_12 => 4352,
            KernelGeneration::Linux6_18 => 2304,
        }
    }

    /// Returns the memory of a full segment in the receive buffer, in bytes. On 6.1 and 6.12: a packet of 1500 bytes
    /// that passes from namespace to namespace. On 6.18: one that a driver or a packet socket has allocated.
    pub(crate) fn segment_memory(self) -> u64 {
        match self {
            KernelGeneration::Linux6_1 => 2728,
            KernelGeneration::Linux6_12 => 1448 + BUFFER_OVERHEAD,
            KernelGeneration::Linux6_18 => 2304,
        }
    }

    /// Returns the memory of `held`, segments of up to `mss` bytes beyond a gap, in bytes. 6.12 appends a segment to
    /// the socket buffer of the previous one while that has a free fragment (`tcp_ooo_try_coalesce`).
    pub(crate) fn held_memory(self, held: Held, mss: u64) -> u64 {
        let mss = mss.max(1);
        if self != KernelGeneration::Linux6_12 {
            return held.bytes * self.segment_memory() / mss;
        }
        held.bytes + BUFFER_OVERHEAD * (held.runs + held.bytes / (MAX_FRAGMENTS * mss))
    }

    /// Whether data waiting in the receive queue is subtracted from the data read in a round trip
    /// (`tcp_rcv_space_adjust` of 6.12.117).
    pub(crate) fn subtracts_queue(self) -> bool {
        self == KernelGeneration::Linux6_12
    }

    /// Returns the duration of a write during which `packets` are sent. In Linux, ACKs that arrive during the write are
    /// handled at its end, and release a short last segment.
    pub(crate) fn write_time(self, packets: u64, rng: &mut dyn Rng) -> Span {
        if self == KernelGeneration::Linux6_1 || packets == 0 {
            return Span::ZERO;
        }
        let per_packet_ns = 2_000 + ((u64::from(rng.next_u32()) * 2_001) >> 32);
        Span(per_packet_ns.saturating_mul(packets))
    }

    /// Whether the share of the receive buffer that is usable as window is measured (since 6.6); otherwise it is half.
    pub(crate) fn measures_window(self) -> bool {
        self != KernelGeneration::Linux6_1
    }

    /// Whether the receive buffer grows by the rules of 6.16 and later, which count data beyond a gap.
    pub(crate) fn grows_for_gaps(self) -> bool {
        self == KernelGeneration::Linux6_18
    }
}
