//! The inputs and outputs of a rule.
//!
//! The same as bpf/cc/cpu_rules/rule.h, for the kernel's BBR and the eBPF program `bbr3`; tests/vectors/bbr_cpu.json
//! verifies that both agree.

/// BBR's bandwidths are in packets per microsecond, times 2 to this.
pub(super) const BW_SHIFT: u32 = 24;

/// The modes of BBR, numbered as the kernel numbers them.
pub(super) mod mode {
    pub const STARTUP: u8 = 0;
    pub const PROBE_BW: u8 = 2;
    pub const PROBE_RTT: u8 = 3;
}

/// State after an ACK that BBR has handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Input {
    /// The time.
    pub now_us: u64,
    /// Time at which pacing allows the next packet; in the past: it could have left then.
    pub departure_us: u64,
    /// Since the start, retransmissions included.
    pub bytes_sent: u64,
    /// Handed to the network and not acknowledged, retransmissions included.
    pub inflight_bytes: u64,
    /// Payload of a full-sized segment.
    pub mss: u64,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// Sample of this ACK; 0: none.
    pub rtt_us: u64,
    /// As set by BBR.
    pub snd_cwnd: u64,
    /// Before BBR has handled this ACK.
    pub prior_cwnd: u64,
    /// Packets in flight.
    pub inflight: u64,
    /// Packets in flight before this ACK.
    pub prior_inflight: u64,
    /// Packets that this ACK reports as delivered.
    pub acked: u64,
    /// Packets delivered since the start.
    pub delivered: u64,
    /// Packets lost since the start.
    pub lost: u64,
    /// State of loss recovery as the kernel numbers it: 4 after a timeout.
    pub ca_state: u64,
    /// Whether the application or the receiver limits the sender.
    pub is_held_back: bool,
    /// Whether the connection's latest rate sample was limited by its application.
    pub rate_app_limited: bool,
    /// As set by BBR.
    pub pacing_rate_bytes_per_s: u64,
    /// Limit of the socket.
    pub max_pacing_rate_bytes_per_s: u64,
    /// BBR's bandwidth estimate; 0 before the first sample.
    pub bw: u64,
    /// [`u32::MAX`] if unknown.
    pub min_rtt_us: u64,
    /// See [`mode`].
    pub mode: u8,
    /// The short-term bound of what is in flight, in packets, of a version that has one.
    pub inflight_bound: Option<u64>,
    /// cwnd before losses bound it, for versions that have such a bound.
    pub unbounded_cwnd: Option<u64>,
    /// In Startup: round trips in which the bandwidth did not grow.
    pub full_bw_count: u32,
}

/// Changes. `None`: as set by BBR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// In BBR's own state, until BBR sets it again; in 256ths.
    pub pacing_gain: Option<u32>,
    pub snd_cwnd: Option<u64>,
    /// The pipe is full: BBR's search for the end of the growth is over.
    pub is_startup_over: bool,
    /// BBR's count of round trips without growth.
    pub full_bw_count: Option<u32>,
    /// The smallest round-trip time has just been confirmed: BBR does not need to empty the path for another ten
    /// seconds.
    pub is_min_rtt_fresh: bool,
    /// Whether this ACK counts as one at which the sender was short of CPU.
    pub is_boosted: bool,
}
