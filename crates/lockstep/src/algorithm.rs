//! The algorithms that can be recorded.

/// A congestion controller of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// BBR, version 1.
    Bbr,
    /// CUBIC.
    Cubic,
    /// DCTCP.
    Dctcp,
    /// Reno.
    Reno,
}

/// Clock on which a member of a controller's state is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Jiffies; 0 means never.
    Jiffies,
    /// The connection's clock in microseconds; 0 means never.
    Micros,
    /// The connection's clock in milliseconds.
    Millis,
    /// Sequence numbers.
    Sequence,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 4] = [Algorithm::Bbr, Algorithm::Cubic, Algorithm::Dctcp, Algorithm::Reno];

    /// Returns the name of the algorithm, both in the kernel and in the simulator.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "bbr",
            Algorithm::Cubic => "cubic",
            Algorithm::Dctcp => "dctcp",
            Algorithm::Reno => "reno",
        }
    }

    /// Returns the name under which the recorded variant is registered; at most 15 characters, the kernel's limit.
    pub fn recorded_name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "lock_bbr",
            Algorithm::Cubic => "lock_cubic",
            Algorithm::Dctcp => "lock_dctcp",
            Algorithm::Reno => "lock_reno",
        }
    }

    /// Returns the first release of Linux on which it can be recorded.
    pub fn kernel(self) -> &'static str {
        if self == Algorithm::Bbr { "6.10" } else { "6.1" }
    }

    /// Returns the compiled BPF program.
    pub fn object(self) -> &'static [u8] {
        match self {
            Algorithm::Bbr => include_bytes!(concat!(env!("OUT_DIR"), "/bbr.bpf.o")),
            Algorithm::Cubic => include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o")),
            Algorithm::Dctcp => include_bytes!(concat!(env!("OUT_DIR"), "/dctcp.bpf.o")),
            Algorithm::Reno => include_bytes!(concat!(env!("OUT_DIR"), "/reno.bpf.o")),
        }
    }

    /// Returns the kernel's structure of its state, if it has one.
    pub fn structure(self) -> Option<&'static str> {
        match self {
            Algorithm::Bbr => Some("bbr"),
            Algorithm::Cubic => Some("bictcp"),
            Algorithm::Dctcp => Some("dctcp"),
            Algorithm::Reno => None,
        }
    }

    /// Returns whether its decisions depend on the number of marked segments.
    pub fn uses_marks(self) -> bool {
        self == Algorithm::Dctcp
    }

    /// Returns whether a member of [`Algorithm::structure`] is recorded. DCTCP's structure also has state of a
    /// receiver, which contains the peer's sequence numbers.
    pub fn records(self, member: &str) -> bool {
        (self, member) != (Algorithm::Dctcp, "prior_rcv_nxt")
    }

    /// Returns the clock of a member of [`Algorithm::structure`], if it has one.
    pub fn clock(self, member: &str) -> Option<Clock> {
        match (self, member) {
            (Algorithm::Bbr, "min_rtt_stamp" | "probe_rtt_done_stamp") => Some(Clock::Jiffies),
            (Algorithm::Bbr, "cycle_mstamp" | "ack_epoch_mstamp") => Some(Clock::Micros),
            (Algorithm::Bbr, "lt_last_stamp") => Some(Clock::Millis),
            (Algorithm::Cubic, "last_time" | "epoch_start") => Some(Clock::Jiffies),
            (Algorithm::Cubic, "round_start" | "last_ack") => Some(Clock::Micros),
            (Algorithm::Cubic, "end_seq") | (Algorithm::Dctcp, "next_seq") => Some(Clock::Sequence),
            _ => None,
        }
    }
}
