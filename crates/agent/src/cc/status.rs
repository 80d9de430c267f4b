//! `cc status`: state and counters of the eBPF algorithms.

use super::counters::{Counters, settings_of};
use super::kernel::StructOpsKernel;
use super::registered::{Registered, State};
use super::settable::Settings;
use super::stale::{self, StaleDefault, stale_defaults};
use crate::requirements::{self, FILES_OF_CC};
use serde::Serialize;
use thalweg_store::Problem;

#[derive(Serialize)]
struct Status {
    algorithms: Vec<Algorithm>,
    stale_defaults: Vec<StaleDefault>,
}

#[derive(Serialize)]
struct Algorithm {
    name: String,
    /// `linked`, `kept` or `leaving`.
    state: &'static str,
    /// Ids of the processes in [`Registered::holders`].
    held_by: Vec<i32>,
    rule: Option<String>,
    /// Parameters that differ from their defaults.
    parameters: Settings,
    counters: Option<Counters>,
}

/// Returns the state of all eBPF algorithms, as text or JSON.
///
/// # Errors
/// If the machine lacks a feature, or this process lacks a permission.
pub fn status(json: bool) -> Result<String, Problem> {
    requirements::check_files(FILES_OF_CC)?;
    let kernel = StructOpsKernel::probe()?;
    let algorithms = Registered::all(&kernel).iter().map(algorithm).collect();
    let status = Status { algorithms, stale_defaults: stale_defaults()? };
    if json {
        return Ok(format!("{:#}\n", serde_json::to_value(&status).expect("plain values")));
    }
    let stale = stale::text(&status.stale_defaults);
    if status.algorithms.is_empty() {
        return Ok(format!("{stale}no eBPF algorithm is registered\n"));
    }
    Ok(stale + &status.algorithms.iter().map(text).collect::<String>())
}

fn algorithm(registered: &Registered) -> Algorithm {
    let state = match registered.state {
        State::Linked { .. } => "linked",
        State::Kept => "kept",
        State::Leaving => "leaving",
    };
    let mut parameters = settings_of(registered);
    Algorithm {
        name: registered.name.clone(),
        state,
        held_by: registered.holders().into_iter().map(|holder| holder.pid).collect(),
        rule: parameters.remove("rule"),
        parameters,
        counters: Counters::of(registered),
    }
}

fn text(algorithm: &Algorithm) -> String {
    let state = match (algorithm.state, algorithm.held_by.first()) {
        ("linked", Some(pid)) => format!("registered until process {pid} exits"),
        ("kept", Some(pid)) => format!("registered until it is unloaded, or process {pid} unregisters it"),
        ("linked", None) => "registered until its pinned link is removed".to_owned(),
        ("kept", None) => "registered until it is unloaded".to_owned(),
        _ => "unregistered; connections that use it keep it until they close".to_owned(),
    };
    let rule = algorithm.rule.as_ref().map(|rule| format!(", rule {rule}")).unwrap_or_default();
    let mut text = format!("{}: {state}{rule}\n", algorithm.name);
    if !algorithm.parameters.is_empty() {
        let parameters: Vec<String> =
            algorithm.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        text += &format!("  parameters    {}\n", parameters.join(" "));
    }
    if let Some(counters) = &algorithm.counters {
        text += &format!("  connections   {} open, {} in total\n", counters.live_flows(), counters.flows_begun);
        text += &format!("  ACKs          {}\n", counters.acks);
        if let Some(boosted) = counters.boosted_acks {
            let share = 100.0 * boosted as f64 / counters.acks.max(1) as f64;
            text += &format!("  boosted ACKs  {boosted} ({share:.1} %)\n");
        }
    }
    text
}
