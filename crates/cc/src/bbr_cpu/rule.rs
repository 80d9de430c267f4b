//! The inputs and outputs of a rule, as in bpf/cc/cpu_rules/rule.h.

/// BBR's bandwidths are in packets per microsecond, times 2 to this power.
pub(super) const BW_SHIFT: u32 = 24;

/// BBR's modes, with the kernel's numbers.
pub(super) mod mode {
    pub const STARTUP: u8 = 0;
    pub const PROBE_BW: u8 = 2;
    pub const PROBE_RTT: u8 = 3;
}

/// State after an ACK that BBR has handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Input {
    /// Current time.
    pub now_us: u64,
    /// Earliest departure of the next packet under pacing; in the past if the packet could already have left.
    pub departure_us: u64,
    /// Bytes sent since the start of the connection, including retransmissions.
    pub bytes_sent: u64,
    /// Bytes sent, including retransmissions, less the bytes acknowledged cumulatively.
    pub inflight_bytes: u64,
    /// Payload of a full-sized segment.
    pub mss: u64,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// RTT sample of this ACK; 0 without a sample.
    pub rtt_us: u64,
    /// cwnd as set by BBR.
    pub snd_cwnd: u64,
    /// cwnd before BBR handled this ACK.
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
    /// State of loss recovery, with the kernel's numbers: 4 after a timeout.
    pub ca_state: u64,
    /// Whether the application or the receiver limits the sender.
    pub is_held_back: bool,
    /// Whether this ACK's rate sample was application-limited; false without a sample.
    pub rate_app_limited: bool,
    /// Pacing rate as set by BBR.
    pub pacing_rate_bytes_per_s: u64,
    /// Maximum pacing rate of the socket.
    pub max_pacing_rate_bytes_per_s: u64,
    /// BBR's bandwidth estimate; 0 before the first sample.
    pub bw: u64,
    /// Minimum RTT; [`u32::MAX`] if unknown.
    pub min_rtt_us: u64,
    /// BBR's mode; see [`mode`].
    pub mode: u8,
    /// Short-term bound of the packets in flight; `None` without a bound, and for version 1, which has none.
    pub inflight_bound: Option<u64>,
    /// cwnd before the bounds of the model; `None` outside ProbeBW, and for version 1, which has no such bounds.
    pub unbounded_cwnd: Option<u64>,
    /// In Startup, the number of round trips in which the bandwidth did not grow.
    pub full_bw_count: u32,
}

/// Changes that a rule makes. `None` leaves a value as BBR has set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub pacing_rate_bytes_per_s: Option<u64>,
    /// Pacing gain in BBR's own state, in 256ths; holds until BBR sets it again.
    pub pacing_gain: Option<u32>,
    pub snd_cwnd: Option<u64>,
    /// Whether Startup ends: the pipe is full.
    pub is_startup_over: bool,
    /// New value of BBR's count of round trips without growth.
    pub full_bw_count: Option<u32>,
    /// Whether the minimum round-trip time was confirmed, so that the time until the next ProbeRTT restarts.
    pub is_min_rtt_fresh: bool,
    /// Whether this ACK counts as boosted: the sender was short of CPU.
    pub is_boosted: bool,
}
