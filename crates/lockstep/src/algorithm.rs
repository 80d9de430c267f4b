//! The algorithms that are recorded.

/// A controller of the kernel.
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

/// Unit of a member of a controller's state, if it depends on the time of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Jiffies; 0: never.
    Jiffies,
    /// The connection's clock in microseconds; 0: never.
    Micros,
    /// The connection's clock in milliseconds.
    Millis,
    /// Sequence numbers.
    Sequence,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 4] = [Algorithm::Bbr, Algorithm::Cubic, Algorithm::Dctcp, Algorithm::Reno];

    /// The kernel's name of it, and ours.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "bbr",
            Algorithm::Cubic => "cubic",
            Algorithm::Dctcp => "dctcp",
            Algorithm::Reno => "reno",
        }
    }

    /// The name under which the recorded one is registered; no longer than the kernel allows (15 letters).
    pub fn recorded_name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "lock_bbr",
            Algorithm::Cubic => "lock_cubic",
            Algorithm::Dctcp => "lock_dctcp",
            Algorithm::Reno => "lock_reno",
        }
    }

    /// The first release of Linux on which it can be recorded.
    pub fn kernel(self) -> &'static str {
        if self == Algorithm::Bbr { "6.10" } else { "6.1" }
    }

    /// The compiled program.
    pub fn object(self) -> &'static [u8] {
        match self {
            Algorithm::Bbr => include_bytes!(concat!(env!("OUT_DIR"), "/bbr.bpf.o")),
            Algorithm::Cubic => include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o")),
            Algorithm::Dctcp => include_bytes!(concat!(env!("OUT_DIR"), "/dctcp.bpf.o")),
            Algorithm::Reno => include_bytes!(concat!(env!("OUT_DIR"), "/reno.bpf.o")),
        }
    }

    /// The kernel's structure of its state, if it has any.
    pub fn structure(self) -> Option<&'static str> {
        match self {
            Algorithm::Bbr => Some("bbr"),
            Algorithm::Cubic => Some("bictcp"),
            Algorithm::Dctcp => Some("dctcp"),
            Algorithm::Reno => None,
        }
    }

    /// Whether its decisions depend on the number of marked segments.
    pub fn uses_marks(self) -> bool {
        self == Algorithm::Dctcp
    }

    /// Whether a member of that structure is recorded. That of DCTCP includes the state of a receiver, which counts the
    /// peer's sequence numbers.
    pub fn records(self, member: &str) -> bool {
        (self, member) != (Algorithm::Dctcp, "prior_rcv_nxt")
    }

    /// Returns the clock of a member of that structure, if it has one.
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
