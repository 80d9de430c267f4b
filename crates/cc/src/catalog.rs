//! The catalog of congestion controllers.

use crate::Controller;
use crate::bbr::{self, Bbr};
use crate::bbr_cpu::{self, BbrCpu};
use crate::bbr3::{self, Bbr3};
use crate::bic::{self, Bic};
use crate::cubic::{self, Cubic};
use crate::dctcp::{self, Dctcp};
use crate::htcp::{self, Htcp};
use crate::illinois::{self, Illinois};
use crate::param::Param;
use crate::prague::{self, Prague};
use crate::reno::{self, Reno};
use crate::vegas::{self, Vegas};
use std::collections::BTreeMap;
use std::fmt;
use thalweg_units::{Ecn, Packets};

/// Constructs a controller from a function that returns a parameter's value by name.
type Make = fn(value: &dyn Fn(&str) -> f64) -> Box<dyn Controller>;

/// A congestion controller that can be built by name.
pub struct Entry {
    /// Name in `flow.cc`.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    /// Constructs the controller. It reads only parameters in `params`.
    pub(crate) make: Make,
}

impl fmt::Debug for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Name of the BBR variant whose probing gain adapts to the path.
const BBR_AUTO: &str = "bbr_auto";

/// The parameters of `bbr_auto`: those of BBR, and those of the gain rule.
const AUTO_PARAMS: &[Param] = &{
    let mut params = [bbr::AUTO_PARAMS[0]; bbr::PARAMS.len() + bbr::AUTO_PARAMS.len()];
    let mut index = 0;
    while index < params.len() {
        let is_of_bbr = index < bbr::PARAMS.len();
        params[index] = if is_of_bbr { bbr::PARAMS[index] } else { bbr::AUTO_PARAMS[index - bbr::PARAMS.len()] };
        index += 1;
    }
    params
};

/// All controllers, in the order of their names.
pub const CATALOG: &[Entry] = &[
    Entry {
        name: "bbr",
        about: "BBRv1: paces at the measured bandwidth and keeps at most two BDPs in flight",
        params: bbr::PARAMS,
        make: |value| Box::new(Bbr::new(bbr::Settings::of(value))),
    },
    Entry {
        name: "bbr3",
        about: "BBRv3: like BBRv1, but losses bound its rate and its data in flight, and it probes every 2 to 3 s",
        params: bbr3::PARAMS,
        make: |value| {
            let bbr3 = Bbr3::new(value("variant") >= 0.5, value("ecn_low") >= 0.5);
            let rule = value("cpu_rule");
            if rule < 0.5 { Box::new(bbr3) } else { Box::new(BbrCpu::new(bbr3, rule < 1.5)) }
        },
    },
    Entry {
        name: BBR_AUTO,
        about: "BBRv1 that adapts its probing gain to the measured loss and queueing",
        params: AUTO_PARAMS,
        make: |value| Box::new(Bbr::with_auto_gain(bbr::Settings::of(value), bbr::Response::of(value))),
    },
    Entry {
        name: "bbr_cpu",
        about: "BBRv1 for senders that share a CPU: after time off CPU, it sends the data that pacing missed",
        params: bbr_cpu::PARAMS,
        make: |value| Box::new(BbrCpu::new(Bbr::new(bbr::Settings::of(value)), value("rule") < 0.5)),
    },
    Entry {
        name: "bic",
        about: "BIC (INFOCOM 2004): after a loss, a binary search for the window at which the loss occurred",
        params: bic::PARAMS,
        make: |value| Box::new(Bic::new(bic_settings(value))),
    },
    Entry {
        name: "cubic",
        about: "CUBIC (RFC 9438): after a loss, the window returns to its previous value as a cubic function of time",
        params: cubic::PARAMS,
        make: |value| Box::new(Cubic::new(value("hystart") >= 0.5, value("beta_ecn"))),
    },
    Entry {
        name: "dctcp",
        about: "DCTCP (RFC 8257): reduces the window in proportion to the fraction of marked segments",
        params: dctcp::PARAMS,
        make: |value| {
            let codepoint = if value("ect1") >= 0.5 { Ecn::Ect1 } else { Ecn::Ect0 };
            Box::new(Dctcp::new(value("shift_g"), codepoint))
        },
    },
    Entry {
        name: "htcp",
        about: "H-TCP (draft-leith-tcp-htcp-06): grows faster with the time since the latest congestion event",
        params: htcp::PARAMS,
        make: |value| Box::new(Htcp::new(value("use_rtt_scaling") >= 0.5, value("use_bandwidth_switch") >= 0.5)),
    },
    Entry {
        name: "illinois",
        about: "Illinois (2008): reduces the window on loss; the queueing delay sets the reduction and the growth rate",
        params: illinois::PARAMS,
        make: |value| Box::new(Illinois::new(Packets(whole(value("win_thresh"))), whole(value("theta")))),
    },
    Entry {
        name: "prague",
        about: "Prague (draft -04): like DCTCP with ECT(1), for L4S; paced, with little dependence on the round-trip \
                time",
        params: prague::PARAMS,
        make: |value| Box::new(Prague::new(prague::Settings::of(value))),
    },
    Entry {
        name: "reno",
        about: "Reno (RFC 5681): adds one segment per round trip, and halves the window on a loss",
        params: reno::PARAMS,
        make: |value| Box::new(Reno::new(value("beta_ecn"))),
    },
    Entry {
        name: "vegas",
        about: "Vegas (JSAC 1995): keeps 2 to 4 segments in the queue, estimated from the round-trip time",
        params: vegas::PARAMS,
        make: |value| Box::new(Vegas::new(vegas_thresholds(value))),
    },
];

/// Converts the value of a parameter that accepts only non-negative whole numbers.
fn whole(value: f64) -> u64 {
    value as u64
}

fn bic_settings(value: &dyn Fn(&str) -> f64) -> bic::Settings {
    bic::Settings {
        is_fast_converging: value("fast_convergence") >= 0.5,
        max_increment: whole(value("max_increment")),
        low_window: whole(value("low_window")),
        beta: whole(value("beta")),
        initial_ssthresh: whole(value("initial_ssthresh")),
        smooth_part: whole(value("smooth_part")),
    }
}

fn vegas_thresholds(value: &dyn Fn(&str) -> f64) -> vegas::Thresholds {
    vegas::Thresholds { alpha: whole(value("alpha")), beta: whole(value("beta")), gamma: whole(value("gamma")) }
}

/// Reason why a controller cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildError {
    /// The algorithm is unknown.
    UnknownName(String),
    /// The controller has no such parameter.
    UnknownParam {
        /// The controller.
        name: &'static str,
        /// The unknown parameter.
        param: String,
    },
    /// The value of the parameter is out of range, or a fraction where only whole numbers are valid.
    OutOfRange {
        /// The controller.
        name: &'static str,
        /// The parameter.
        param: &'static Param,
        /// The value that was given.
        found: f64,
    },
}

impl BuildError {
    /// Returns the flow's key that is invalid: `cc`, or one of `cc_params`.
    pub fn place(&self) -> String {
        match self {
            BuildError::UnknownName(_) => "cc".to_owned(),
            BuildError::UnknownParam { param, .. } => format!("cc_params.{param}"),
            BuildError::OutOfRange { param, .. } => format!("cc_params.{}", param.name),
        }
    }

    /// Returns a description of what was given.
    pub fn found(&self) -> String {
        match self {
            BuildError::UnknownName(name) => format!("{name:?}"),
            BuildError::UnknownParam { param, name } => format!("a parameter {param:?} of {name}"),
            BuildError::OutOfRange { found, .. } => found.to_string(),
        }
    }

    /// Returns the expected values.
    pub fn expected(&self) -> String {
        match self {
            BuildError::UnknownName(_) => one_of(CATALOG.iter().map(|entry| entry.name)),
            BuildError::UnknownParam { name, .. } => {
                let params = CATALOG.iter().filter(|entry| entry.name == *name).flat_map(|entry| entry.params);
                one_of(params.map(|param| param.name))
            }
            BuildError::OutOfRange { param: Param { is_whole: true, min, max, .. }, .. } => {
                format!("a whole number from {min} to {max}")
            }
            BuildError::OutOfRange { param: Param { min, max, .. }, .. } => format!("a number from {min} to {max}"),
        }
    }
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none: it has no parameters".to_owned() } else { format!("one of {}", names.join(", ")) }
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: found {}, expected {}", self.place(), self.found(), self.expected())
    }
}

impl std::error::Error for BuildError {}

/// Former names of parameters, which are still accepted, and the current names, which take precedence.
const FORMER_NAMES: &[(&str, &str)] = &[("pacing_gain", "probe_gain")];

/// Creates the controller `name` with `params` in place of its defaults.
///
/// # Errors
/// If the controller or a parameter is unknown, or a value is invalid.
pub fn build(name: &str, params: &BTreeMap<String, f64>) -> Result<Box<dyn Controller>, BuildError> {
    let entry = find(name)?;
    check(entry, params)?;
    Ok((entry.make)(&|key| value_of(entry, params, key)))
}

/// Returns the parameters of `bbr` or `bbr_auto` (`name`) in the format of the eBPF programs `bbr_tuned` and
/// `bbr_auto`: the members of `struct tuned_params`, in order.
///
/// # Errors
/// If the controller or a parameter is unknown, or a value is invalid.
///
/// # Panics
/// If `name` is a controller without the parameters of `bbr`.
pub fn bbr_words(name: &str, params: &BTreeMap<String, f64>) -> Result<Vec<bbr::Word>, BuildError> {
    let entry = find(name)?;
    check(entry, params)?;
    let value = |key: &str| value_of(entry, params, key);
    let response = (name == BBR_AUTO).then(|| bbr::Response::of(&value));
    let rule = bbr::Response::words(response.as_ref());
    Ok(bbr::Settings::of(&value).words().into_iter().chain(rule).collect())
}

fn find(name: &str) -> Result<&'static Entry, BuildError> {
    CATALOG.iter().find(|entry| entry.name == name).ok_or(BuildError::UnknownName(name.to_owned()))
}

fn check(entry: &Entry, params: &BTreeMap<String, f64>) -> Result<(), BuildError> {
    for (key, value) in params {
        let Some(param) = entry.params.iter().find(|param| param.name == key) else {
            return Err(BuildError::UnknownParam { name: entry.name, param: key.clone() });
        };
        if !(param.min..=param.max).contains(value) || (param.is_whole && value.fract() != 0.0) {
            return Err(BuildError::OutOfRange { name: entry.name, param, found: *value });
        }
    }
    Ok(())
}

fn value_of(entry: &Entry, params: &BTreeMap<String, f64>, key: &str) -> f64 {
    let default = || entry.params.iter().find(|param| param.name == key).map(|param| param.default);
    let former = FORMER_NAMES.iter().find(|(_, param)| *param == key).and_then(|(former, _)| params.get(*former));
    params
        .get(key)
        .or(former)
        .copied()
        .or_else(default)
        .expect("a controller asks only for parameters that it declares")
}
