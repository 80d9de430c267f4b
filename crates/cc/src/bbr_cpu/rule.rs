//! What does a rule know, and what may it change?
//!
//! The same as bpf/cc/cpu_rules/rule.h, for the kernel's BBR and the eBPF program `bbr3`; tests/vectors/bbr_cpu.json
//! holds the two together.

/// BBR's bandwidths are in packets per microsecond, times 2 to this.
pub(super) const BW_SHIFT: u32 = 24;

/// The modes of BBR, numbered as the kernel numbers them.
pub(super) mod mode {
    pub const STARTUP: u8 = 0;
    pub const PROBE_BW: u8 = 2;
    pub const PROBE_RTT: u8 = 3;
}

/// What is known after an ACK that BBR has handled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Input {
    /// The time.
    pub now_us: u64,
    /// When pacing lets the next packet leave; in the past: it could have left then.
    pub departure_us: u64,
    /// Since the start, retransmissions included.
    pub bytes_sent: u64,
    /// Handed to the network and not acknowledged, retransmissions included.
    pub inflight_bytes: u64,
    /// Payload of a full-sized segment.
    pub mss: u64,
    /// Smoothed round-trip time.
    pub srtt_us: u64,
    /// That this ACK has measured; 0: none.
    pub rtt_us: u64,
    /// As BBR has set it.
    pub snd_cwnd: u64,
    /// Before BBR has handled this ACK.
    pub prior_cwnd: u64,
    /// Packets in flight.
    pub inflight: u64,
    /// Packets in flight before this ACK.
    pub prior_inflight: u64,
    /// Packets that this ACK says are delivered.
    pub acked: u64,
    /// Packets delivered since the start.
    pub delivered: u64,
    /// Packets lost since the start.
    pub lost: u64,
    /// State of loss recovery as the kernel numbers it: 4 after a timeout.
    pub ca_state: u64,
    /// Whether the application or the receiver bounds what is sent.
    pub is_held_back: bool,
    /// Whether the rate that the connection last measured was bounded by its application.
    pub rate_app_limited: bool,
    /// As BBR has set it.
    pub pacing_rate_bytes_per_s: u64,
    /// What the socket allows.
    pub max_pacing_rate_bytes_per_s: u64,
    /// What BBR takes for the bandwidth; 0 before the first sample.
    pub bw: u64,
    /// [`u32::MAX`] if it is not known yet.
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

/// What is to change. None: as BBR has set it.
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
    /// The smallest round-trip time has just been seen: BBR has no need to empty the path for another ten seconds.
    pub is_min_rtt_fresh: bool,
    /// Whether this ACK counts as one at which the sender was found short of CPU.
    pub is_boosted: bool,
}
