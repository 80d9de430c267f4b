//! Parameters of a flow's congestion control, in the form of `thalweg-agent cc load --set`.

use super::built_in::{BBR_AUTO, BBR_CPU, BBR_TUNED, BBR3};
use crate::error::Error;
use thalweg_plan::plan::Flow;

/// Returns the parameter that selects the rule for a shared CPU, and the agent's names of the rules, indexed by the
/// parameter's value.
fn rules(cc: &str) -> Option<(&'static str, &'static [&'static str])> {
    match cc {
        BBR_CPU => Some(("rule", &["paper", "schedule"])),
        BBR3 => Some(("cpu_rule", &["none", "paper", "schedule"])),
        _ => None,
    }
}

/// Returns the simulator's algorithm against which the parameters of `cc` are checked, if any.
fn simulated(cc: &str) -> Option<&'static str> {
    match cc {
        BBR_TUNED => Some("bbr"),
        BBR_AUTO => Some(BBR_AUTO),
        _ => None,
    }
}

/// Returns the parameters that a flow sets, each as `PARAM=VALUE`.
///
/// # Errors
/// `not-honoured` or `invalid-experiment`, if a parameter does not exist or has an invalid value.
pub(crate) fn settings(flow: &Flow) -> Result<Vec<String>, Error> {
    if let Some(simulated) = simulated(&flow.cc).filter(|_| flow.cc_file.is_none()) {
        return of_bbr(simulated, flow);
    }
    let rules = rules(&flow.cc).filter(|_| flow.cc_file.is_none());
    let set = |(param, value): (&String, &f64)| match rules {
        Some((name, names)) if name == param => rule(flow, param, *value, names),
        _ => {
            let message = format!("{}: this parameter exists only in the simulator", place(flow, param));
            Err(Error::new("not-honoured", message, "remove it, or use --engine sim"))
        }
    };
    flow.cc_params.iter().map(set).collect()
}

fn of_bbr(simulated: &str, flow: &Flow) -> Result<Vec<String>, Error> {
    thalweg_cc::bbr_words(simulated, &flow.cc_params).map_err(|error| {
        let message = format!("flows.{}.{error}", flow.name);
        Error::new("invalid-experiment", message, "docs/concepts/bbr-tuned.md lists the parameters")
    })?;
    Ok(flow.cc_params.iter().map(|(param, value)| format!("{param}={value}")).collect())
}

fn rule(flow: &Flow, param: &str, value: f64, names: &[&str]) -> Result<String, Error> {
    let name = names.iter().zip(0u8..).find(|(_, number)| f64::from(*number) == value).map(|(name, _)| *name);
    name.map(|name| format!("rule={name}")).ok_or_else(|| {
        let last = names.len() - 1;
        let message = format!("{}: found {value}, expected a whole number from 0 to {last}", place(flow, param));
        let rules: Vec<String> = names.iter().enumerate().map(|(number, name)| format!("{number} is {name}")).collect();
        Error::new("invalid-experiment", message, rules.join(", "))
    })
}

fn place(flow: &Flow, param: &str) -> String {
    format!("flows.{}.cc_params.{param}", flow.name)
}
