//! BBRv3's state.

use super::bounds::ShortTerm;
use super::cycle::{Cycle, Phase};
use super::full_pipe::FullPipe;
use super::mark_fraction::MarkFraction;
use super::max_bw::MaxBandwidth;
use super::min_rtt::MinRtt;
use super::recovery::Recovery;
use super::round::Round;
use super::signals::Signals;
use super::variant::Variant;
use crate::aggregation::Aggregation;
use crate::fixed_point::{Bandwidth, Gain};
use crate::pacing::Pacing;
use crate::{Conn, Window};
use thalweg_units::Packets;

/// Minimum of cwnd: enough to trigger ACKs from a receiver that delays them (5.6.4.3, MinPipeCwnd).
pub(super) const MIN_CWND: Packets = Packets(4);

/// 4 ln 2, the minimum pacing gain that doubles the delivery rate each round; rounded up, as in Linux (2.5).
pub(super) const STARTUP_GAIN: Gain = Gain::hundredths(277).next();

/// cwnd gain except in phase Up and in ProbeRTT (2.6, DefaultCwndGain).
pub(super) const CWND_GAIN: Gain = Gain::hundredths(200);

/// Pacing and cwnd gain of phase Up (5.3.3.5).
const UP_GAIN: Gain = Gain::hundredths(125);
const UP_CWND_GAIN: Gain = Gain::hundredths(225);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBRv3's state, except cwnd and the pacing rate.
#[derive(Debug)]
pub(crate) struct Bbr3 {
    pub(super) variant: Variant,
    pub(super) mode: Mode,
    pub(super) pacing_gain: Gain,
    pub(super) cwnd_gain: Gain,
    pub(super) round: Round,
    pub(super) max_bw: MaxBandwidth,
    pub(super) signals: Signals,
    pub(super) aggregation: Aggregation,
    pub(super) full_pipe: FullPipe,
    pub(super) cycle: Cycle,
    pub(super) min_rtt: MinRtt,
    pub(super) short_term: ShortTerm,
    /// Long-term bound of packets in flight; `None` before too much loss or too many marks (2.9.2, inflight_longterm).
    pub(super) long_term: Option<Packets>,
    pub(super) ecn: MarkFraction,
    pub(super) recovery: Recovery,
    /// cwnd when the connection was established.
    pub(super) initial_cwnd: Packets,
    /// Whether nothing has been delivered yet since the application paused.
    pub(super) is_restarting: bool,
    pub(super) pacing: Pacing,
    /// cwnd before the bounds of the model.
    pub(super) unbounded_cwnd: Packets,
    /// Whether cwnd has reached its target; cleared by changes that may allow a larger cwnd.
    pub(super) is_at_target: bool,
}

impl Bbr3 {
    /// Creates BBRv3 for a connection that is being established. `is_draft` selects the draft's behaviour instead of
    /// Linux's; `is_ecn_low` means that marks come from a queue with a shallow threshold.
    pub fn new(is_draft: bool, is_ecn_low: bool) -> Bbr3 {
        Bbr3 {
            variant: if is_draft { Variant::DRAFT } else { Variant::LINUX },
            mode: Mode::Startup,
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: CWND_GAIN,
            round: Round::default(),
            max_bw: MaxBandwidth::default(),
            signals: Signals::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::default(),
            short_term: ShortTerm::default(),
            long_term: None,
            ecn: MarkFraction::new(is_ecn_low),
            recovery: Recovery::default(),
            initial_cwnd: Packets::ZERO,
            is_restarting: false,
            pacing: Pacing::new(STARTUP_GAIN),
            unbounded_cwnd: Packets::ZERO,
            is_at_target: false,
        }
    }

    /// Initializes the state when the handshake is complete (5.2.1).
    pub(super) fn begin(&mut self, conn: &Conn, window: &Window) {
        self.initial_cwnd = window.cwnd;
        self.round.restart(conn);
        self.min_rtt = MinRtt::new(conn);
        self.aggregation.begin(conn.now);
        self.signals.begin(conn);
    }

    /// Returns the bandwidth estimate in use: the maximum, limited by the short-term bound (5.5.10.3, BoundBWForModel).
    pub(super) fn bandwidth(&self) -> Bandwidth {
        self.short_term.bw.map_or(self.max_bw.max(), |bound| bound.min(self.max_bw.max()))
    }

    /// Whether BBR probes for more bandwidth: in Startup, and in phases Refill and Up (5.3.3.9, IsProbingBW).
    pub(super) fn is_probing(&self) -> bool {
        self.mode == Mode::Startup || (self.mode == Mode::ProbeBw && self.cycle.is_raising())
    }

    /// Sets the gains for the mode and phase (5.6.1).
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (self.variant.drain_gain, CWND_GAIN),
            Mode::ProbeBw => match self.cycle.phase {
                Phase::Up => (UP_GAIN, UP_CWND_GAIN),
                Phase::Down => (self.variant.down_gain, CWND_GAIN),
                Phase::Cruise | Phase::Refill => (Gain::UNIT, CWND_GAIN),
            },
            Mode::ProbeRtt => (Gain::UNIT, self.variant.probe_rtt_cwnd_gain),
        };
    }
}
