//! BBR's state.

use super::auto_gain::{AutoGain, Response};
use super::loss_bound::LossBound;
use super::min_rtt::MinRtt;
use super::policer::Policer;
use super::probe_bw::{BANDWIDTH_ROUNDS, BandwidthClock, Cycle};
use super::recovery::Recovery;
use super::round::Round;
use super::settings::Settings;
use super::startup::FullPipe;
use crate::aggregation::Aggregation;
use crate::fixed_point::{Bandwidth, Gain};
use crate::max_filter::MaxFilter;
use crate::pacing::Pacing;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR's state, except cwnd and the pacing rate.
#[derive(Debug)]
pub(crate) struct Bbr {
    pub(super) settings: Settings,
    pub(super) mode: Mode,
    pub(super) pacing_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) round: Round,
    pub(super) max_bw: MaxFilter<Bandwidth>,
    pub(super) max_bw_clock: BandwidthClock,
    pub(super) policer: Policer,
    pub(super) aggregation: Aggregation,
    pub(super) full_pipe: FullPipe,
    pub(super) cycle: Cycle,
    pub(super) min_rtt: MinRtt,
    pub(super) recovery: Recovery,
    pub(super) loss_bound: LossBound,
    /// Rule that sets the probing gain, in `bbr_auto`.
    pub(super) auto_gain: Option<AutoGain>,
    /// Whether nothing has been delivered yet since the application paused.
    pub(super) is_restarting: bool,
    pub(super) pacing: Pacing,
}

impl Bbr {
    /// Creates BBR for a connection that is being established.
    pub fn new(settings: Settings) -> Bbr {
        Bbr {
            settings,
            mode: Mode::Startup,
            pacing_gain: settings.startup_gain,
            cwnd_gain: settings.startup_cwnd_gain,
            round: Round::default(),
            max_bw: MaxFilter::new(BANDWIDTH_ROUNDS, Bandwidth::ZERO),
            max_bw_clock: BandwidthClock::new(&settings.probing),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(settings.probing),
            min_rtt: MinRtt::default(),
            recovery: Recovery::default(),
            loss_bound: LossBound::new(settings.losses),
            auto_gain: None,
            is_restarting: false,
            pacing: Pacing::new(settings.startup_gain),
        }
    }

    /// Creates BBR whose probing gain depends on losses and queueing.
    pub fn with_auto_gain(settings: Settings, response: Response) -> Bbr {
        let auto_gain = Some(AutoGain::new(response, settings.probing.probe));
        Bbr { auto_gain, ..Bbr::new(settings) }
    }

    /// Whether a probing phase of ProbeBW is in progress.
    pub(super) fn is_probing(&self) -> bool {
        self.mode == Mode::ProbeBw && self.cycle.is_probing()
    }

    /// Returns the bandwidth estimate in use: the policer's rate if a policer was found, otherwise the maximum.
    pub(super) fn bandwidth(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or(self.max_bw.max())
    }
}
