//! What may an algorithm around BBR see and change?

use super::state::Bbr;
use crate::Conn;
use crate::fixed_point::Gain;
use thalweg_units::Span;

/// What BBR takes the path for, in the kernel's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    /// Packets per microsecond, times 2^24.
    pub bw: u64,
    /// [`u32::MAX`] before the first round-trip time.
    pub min_rtt_us: u64,
    /// 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT.
    pub mode: u8,
    /// Startup's rounds without growth.
    pub full_bw_count: u32,
}

impl Bbr {
    /// What BBR takes the path for.
    pub fn model(&self) -> Model {
        Model {
            bw: self.bandwidth().raw(),
            min_rtt_us: self.min_rtt.rtt.map_or(u64::from(u32::MAX), Span::as_micros),
            mode: self.mode as u8,
            full_bw_count: self.full_pipe.rounds,
        }
    }

    /// The pacing gain in 256ths, until BBR sets it again.
    pub fn set_pacing_gain(&mut self, gain: u32) {
        self.pacing_gain = Gain::from_raw(gain);
    }

    /// The smallest round-trip time is as it was: the time until the next ProbeRTT begins anew.
    pub fn refresh_min_rtt(&mut self, conn: &Conn) {
        self.min_rtt.seen_at = conn.jiffies;
    }

    /// Startup has seen so many rounds without growth.
    pub fn set_full_bw_count(&mut self, count: u32) {
        self.full_pipe.rounds = count;
    }

    /// The pipe is full.
    pub fn end_startup(&mut self) {
        self.full_pipe.is_reached = true;
    }
}
