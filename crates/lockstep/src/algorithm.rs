//! The algorithms that are recorded.

/// A controller of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// BBR, version 1.
    Bbr,
    /// CUBIC.
    Cubic,
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
    pub const ALL: [Algorithm; 3] = [Algorithm::Bbr, Algorithm::Cubic, Algorithm::Reno];

    /// The kernel's name of it, and ours.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "bbr",
            Algorithm::Cubic => "cubic",
            Algorithm::Reno => "reno",
        }
    }

    /// The name under which the recorded one is registered; no longer than the kernel allows (15 letters).
    pub fn recorded_name(self) -> &'static str {
        match self {
            Algorithm::Bbr => "lock_bbr",
            Algorithm::Cubic => "lock_cubic",
            Algorithm::Reno => "lock_reno",
        }
    }

    /// The compiled program.
    pub fn object(self) -> &'static [u8] {
        match self {
            Algorithm::Bbr => include_bytes!(concat!(env!("OUT_DIR"), "/bbr.bpf.o")),
            Algorithm::Cubic => include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o")),
            Algorithm::Reno => include_bytes!(concat!(env!("OUT_DIR"), "/reno.bpf.o")),
        }
    }

    /// The kernel's structure of its state, if it has any.
    pub fn structure(self) -> Option<&'static str> {
        match self {
            Algorithm::Bbr => Some("bbr"),
            Algorithm::Cubic => Some("bictcp"),
            Algorithm::Reno => None,
        }
    }

    /// Returns the clock of a member of that structure, if it has one.
    pub fn clock(self, member: &str) -> Option<Clock> {
        match (self, member) {
            (Algorithm::Bbr, "min_rtt_stamp" | "probe_rtt_done_stamp") => Some(Clock::Jiffies),
            (Algorithm::Bbr, "cycle_mstamp" | "ack_epoch_mstamp") => Some(Clock::Micros),
            (Algorithm::Bbr, "lt_last_stamp") => Some(Clock::Millis),
            (Algorithm::Cubic, "last_time" | "epoch_start") => Some(Clock::Jiffies),
            (Algorithm::Cubic, "round_start" | "last_ack") => Some(Clock::Micros),
            (Algorithm::Cubic, "end_seq") => Some(Clock::Sequence),
            _ => None,
        }
    }
}
