//! Parameters of BBR, and Linux's values.
//!
//! The defaults are Linux's; mechanisms that Linux lacks are off by default. Gains are stored in Linux's 256ths.

use super::probe_bw::{Clock, Probing};
use crate::Param;
use crate::fixed_point::Gain;
use thalweg_units::{Packets, Span};

/// Minimum of cwnd, except after losses and in ProbeRTT: enough to trigger ACKs from a receiver that delays them.
pub(super) const MIN_CWND: Packets = Packets(4);

/// The loss threshold is in units of 1 / 2^THRESHOLD_SHIFT.
pub(super) const THRESHOLD_SHIFT: u32 = 16;

/// Minimum pacing gain of draining: below it, a slow path would wait too long before it sends the next packet.
const MIN_GAIN: f64 = 0.1;

pub(crate) const PARAMS: &[Param] = &[
    number("probe_gain", "pacing gain of ProbeBW's probing phase (Linux: 1.25)", 1.25, 1.0, 1.9),
    number("pacing_gain", "former name of probe_gain, which takes precedence", 1.25, 1.0, 1.9),
    number(
        "probe_drain_gain",
        "pacing gain of the phase after a probe, at least 0.1; 0: 2 minus probe_gain (Linux: 0.75)",
        0.0,
        0.0,
        1.0,
    ),
    number("cruise_gain", "pacing gain of ProbeBW's cruising phases (Linux: 1)", 1.0, 0.5, 1.25),
    whole(
        "cruise_phases",
        "number of cruising phases, each of a minimum RTT, between a probe's drain and the next probe; the bandwidth \
         is the maximum over the last 10 round trips, or over a cycle and 2 more if that is longer (Linux: 6)",
        6.0,
        0.0,
        62.0,
    ),
    whole(
        "probe_clock",
        "unit of the time between probes: 0 round trips (cruise_phases; Linux), 1 milliseconds (probe_interval_ms)",
        0.0,
        0.0,
        1.0,
    ),
    number(
        "probe_interval_ms",
        "time from one probe to the next with probe_clock 1, in milliseconds; \
         the bandwidth is the maximum over the last 1.25 intervals, and at least 10 round trips (Linux: none)",
        2500.0,
        10.0,
        60_000.0,
    ),
    number(
        "probe_jitter",
        "random variation of the time between probes, as a share of it in either direction (Linux: 0)",
        0.0,
        0.0,
        1.0,
    ),
    number("cwnd_gain", "cwnd in ProbeBW, in bandwidth-delay products (Linux: 2)", 2.0, 1.0, 3.9),
    number("drain_gain", "pacing gain of Drain (Linux: 88/256, which is 0.34375)", 0.34375, MIN_GAIN, 0.95),
    number("startup_gain", "pacing gain of Startup (Linux: 739/256, which is 2.885 rounded)", 2.885, 1.3, 3.9),
    number(
        "startup_cwnd_gain",
        "cwnd in Startup and Drain, in bandwidth-delay products (Linux: 739/256, which is 2.885 rounded)",
        2.885,
        1.3,
        3.9,
    ),
    number(
        "probe_rtt_interval_s",
        "time without a smaller round-trip time after which ProbeRTT begins, in seconds (Linux: 10)",
        10.0,
        0.5,
        3600.0,
    ),
    whole(
        "probe_rtt_duration_ms",
        "time for which ProbeRTT keeps cwnd low, in milliseconds (Linux: 200)",
        200.0,
        1.0,
        10_000.0,
    ),
    whole("probe_rtt_cwnd", "cwnd in ProbeRTT, in packets (Linux: 4)", 4.0, 2.0, 1000.0),
    number(
        "probe_rtt_bdp_share",
        "cwnd in ProbeRTT as a share of the bandwidth-delay product, where that is more than probe_rtt_cwnd (Linux: 0)",
        0.0,
        0.0,
        1.0,
    ),
    number("loss_threshold", "loss ratio of a round trip above which cwnd is bounded; 1: never (Linux)", 1.0, 0.0, 1.0),
    number(
        "loss_beta",
        "bound of cwnd after a round trip with a loss ratio above loss_threshold, as a share of the data in flight; a \
         probe raises it by a quarter per round trip (Linux: none)",
        0.7,
        0.1,
        1.0,
    ),
    number("headroom", "share of the bound that cwnd leaves unused except while probing (Linux: none)", 0.0, 0.0, 0.9),
    number(
        "aggregation_gain",
        "additional cwnd for aggregated ACKs, as a multiple of the largest aggregate of the last 5 to 10 round trips \
         (Linux: 1)",
        1.0,
        0.0,
        3.9,
    ),
    whole(
        "policer_detection",
        "whether to detect a policer, and keep to its rate for 48 rounds (1 or 0; Linux: 1)",
        1.0,
        0.0,
        1.0,
    ),
];

const fn number(name: &'static str, about: &'static str, default: f64, min: f64, max: f64) -> Param {
    Param { name, about, default, min, max, is_whole: false }
}

const fn whole(name: &'static str, about: &'static str, default: f64, min: f64, max: f64) -> Param {
    Param { name, about, default, min, max, is_whole: true }
}

/// Values of the parameters, in BBR's internal units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(super) probing: Probing,
    pub(super) probe_cwnd_gain: Gain,
    pub(super) drain_gain: Gain,
    pub(super) startup_gain: Gain,
    pub(super) startup_cwnd_gain: Gain,
    pub(super) probe_rtt: ProbeRtt,
    pub(super) losses: LossResponse,
    pub(super) aggregation_gain: Gain,
    pub(super) is_policer_detected: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LossResponse {
    /// Share of lost packets above which a round trip sets the bound, in units of 2^-16.
    pub threshold: u64,
    /// The bound as a share of the packets in flight.
    pub beta: Gain,
    /// Share of the bound that is left as headroom, except while probing.
    pub headroom: Gain,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRtt {
    /// Time for which a minimum of the round-trip time is valid.
    pub interval: Span,
    /// Time for which cwnd is low.
    pub duration: Span,
    /// cwnd, unless `bdp_share` results in more.
    pub cwnd: Packets,
    /// cwnd in BDPs, if that is more than `cwnd`; zero: unused.
    pub bdp_share: Gain,
}

impl Settings {
    /// Returns the settings for the values that `value` returns for the names of [`PARAMS`].
    pub fn of(value: &dyn Fn(&str) -> f64) -> Settings {
        let gain = |name| Gain::of(value(name));
        Settings {
            probing: probing(value),
            probe_cwnd_gain: gain("cwnd_gain"),
            drain_gain: gain("drain_gain"),
            startup_gain: gain("startup_gain"),
            startup_cwnd_gain: gain("startup_cwnd_gain"),
            probe_rtt: ProbeRtt {
                interval: micros(1e6 * value("probe_rtt_interval_s")),
                duration: micros(1e3 * value("probe_rtt_duration_ms")),
                cwnd: Packets(value("probe_rtt_cwnd") as u64),
                bdp_share: gain("probe_rtt_bdp_share"),
            },
            losses: LossResponse {
                threshold: (f64::from(1 << THRESHOLD_SHIFT) * value("loss_threshold")).round() as u64,
                beta: gain("loss_beta"),
                headroom: gain("headroom"),
            },
            aggregation_gain: gain("aggregation_gain"),
            is_policer_detected: value("policer_detection") >= 0.5,
        }
    }
}

/// A parameter in the format of the eBPF programs `bbr_tuned` and `bbr_auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The parameter's name.
    pub param: &'static str,
    /// Its value, in the program's unit.
    pub value: u32,
    /// The program's units per unit of the parameter.
    pub scale: u32,
}

/// Number of units in a gain or share of 1.
pub(super) const GAIN: u32 = 256;

pub(super) fn word(param: &'static str, value: u64, scale: u32) -> Word {
    Word { param, value: u32::try_from(value).expect("the ranges of parameters keep to 32 bits"), scale }
}

impl Settings {
    /// Returns the first members of `struct tuned_params` in bpf/cc/bbr_tuned/tuned.h, in order. `probe_interval_ms` is
    /// 0 if the interval between probes is counted in round trips.
    pub fn words(&self) -> Vec<Word> {
        let (probing, probe_rtt, losses) = (&self.probing, &self.probe_rtt, &self.losses);
        let (cruising, interval) = match probing.clock {
            Clock::RoundTrips(cruising) => (cruising, Span::ZERO),
            Clock::Time(interval) => (1, interval),
        };
        let words = [
            ("probe_gain", probing.probe.raw(), GAIN),
            ("probe_drain_gain", probing.drain.raw(), GAIN),
            ("cruise_gain", probing.cruise.raw(), GAIN),
            ("cruise_phases", cruising, 1),
            ("probe_interval_ms", interval.as_micros(), 1000),
            ("probe_jitter", probing.jitter.raw(), GAIN),
            ("cwnd_gain", self.probe_cwnd_gain.raw(), GAIN),
            ("drain_gain", self.drain_gain.raw(), GAIN),
            ("startup_gain", self.startup_gain.raw(), GAIN),
            ("startup_cwnd_gain", self.startup_cwnd_gain.raw(), GAIN),
            ("probe_rtt_interval_s", probe_rtt.interval.as_micros(), 1_000_000),
            ("probe_rtt_duration_ms", probe_rtt.duration.as_micros(), 1000),
            ("probe_rtt_cwnd", probe_rtt.cwnd.0, 1),
            ("probe_rtt_bdp_share", probe_rtt.bdp_share.raw(), GAIN),
            ("loss_threshold", losses.threshold, 1 << THRESHOLD_SHIFT),
            ("loss_beta", losses.beta.raw(), GAIN),
            ("headroom", losses.headroom.raw(), GAIN),
            ("aggregation_gain", self.aggregation_gain.raw(), GAIN),
            ("policer_detection", u64::from(self.is_policer_detected), 1),
        ];
        words.map(|(param, value, scale)| word(param, value, scale)).to_vec()
    }
}

fn probing(value: &dyn Fn(&str) -> f64) -> Probing {
    let probe = Gain::of(value("probe_gain"));
    let drain = value("probe_drain_gain");
    let interval = micros(1e3 * value("probe_interval_ms"));
    let is_timed = value("probe_clock") >= 0.5;
    Probing {
        probe,
        drain: if drain == 0.0 { probe.complement() } else { Gain::of(drain.max(MIN_GAIN)) },
        cruise: Gain::of(value("cruise_gain")),
        clock: if is_timed { Clock::Time(interval) } else { Clock::RoundTrips(value("cruise_phases") as u64) },
        jitter: Gain::of(value("probe_jitter")),
    }
}

fn micros(value: f64) -> Span {
    Span::from_micros(value.round() as u64)
}
