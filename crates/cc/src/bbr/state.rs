//! The state of BBR.

use super::min_rtt::MinRtt;
use super::policer::Policer;
use super::probe_bw::{Cycle, PHASES};
use super::recovery::Recovery;
use super::round::Round;
use super::startup::FullPipe;
use crate::aggregation::Aggregation;
use crate::fixed_point::{Bandwidth, Gain};
use crate::max_filter::MaxFilter;
use crate::pacing::Pacing;
use thalweg_units::Packets;

/// Rounds for which a maximum of the bandwidth counts: a cycle of ProbeBW and two more.
const BANDWIDTH_ROUNDS: u64 = PHASES as u64 + 2;

/// cwnd never stays below this but after losses: enough to keep a receiver that delays ACKs answering.
pub(super) const MIN_CWND: Packets = Packets(4);

/// What BBR is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Gain of the probing phase of ProbeBW.
    pub pacing_gain: f64,
    /// cwnd in ProbeBW, in BDPs.
    pub cwnd_gain: f64,
    /// Whether to look for a policer.
    pub is_policer_detected: bool,
}

/// The state of BBR beyond cwnd and the pacing rate.
#[derive(Debug)]
pub(crate) struct Bbr {
    pub(super) probe_cwnd_gain: Gain,
    pub(super) is_policer_detected: bool,
    pub(super) mode: Mode,
    pub(super) pacing_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) round: Round,
    pub(super) max_bw: MaxFilter<Bandwidth>,
    pub(super) policer: Policer,
    pub(super) aggregation: Aggregation,
    pub(super) full_pipe: FullPipe,
    pub(super) cycle: Cycle,
    pub(super) min_rtt: MinRtt,
    pub(super) recovery: Recovery,
    /// Whether nothing was delivered yet since the application paused.
    pub(super) is_restarting: bool,
    pub(super) pacing: Pacing,
}

impl Bbr {
    /// BBR for a connection that is being established.
    pub fn new(settings: Settings) -> Bbr {
        Bbr {
            probe_cwnd_gain: Gain::of(settings.cwnd_gain),
            is_policer_detected: settings.is_policer_detected,
            mode: Mode::Startup,
            pacing_gain: Gain::STARTUP,
            cwnd_gain: Gain::STARTUP,
            round: Round::default(),
            max_bw: MaxFilter::new(BANDWIDTH_ROUNDS, Bandwidth::ZERO),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(Gain::of(settings.pacing_gain)),
            min_rtt: MinRtt::default(),
            recovery: Recovery::default(),
            is_restarting: false,
            pacing: Pacing::new(Gain::STARTUP),
        }
    }

    /// The bandwidth that BBR goes by.
    pub(super) fn bandwidth(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or(self.max_bw.max())
    }
}
