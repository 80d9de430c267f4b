//! `thalweg-engine capabilities`: the capabilities of each engine on this machine.

use crate::engine::{Controller, Engine, Lack};
use crate::engines::ENGINES;
use serde_json::{Map, Value, json};
use thalweg_cc::Param;
use thalweg_plan::plan::{FORMAT, Kernel};

/// Returns the capabilities as JSON. Unknown engine names are skipped.
pub fn json(names: &[String]) -> Value {
    json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "engines": named(names).map(describe).collect::<Vec<_>>(),
    })
}

/// Returns the capabilities as text. Unknown engine names are skipped.
pub fn text(names: &[String]) -> String {
    named(names).map(summarise).collect()
}

/// Returns the engines with these names, or all engines without names.
fn named(names: &[String]) -> impl Iterator<Item = &'static dyn Engine> {
    let is_named = |engine: &&dyn Engine| names.is_empty() || names.iter().any(|name| name == engine.name());
    ENGINES.iter().copied().filter(is_named)
}

fn describe(engine: &dyn Engine) -> Value {
    let why_not = engine.why_not();
    json!({
        "name": engine.name(),
        "available": why_not.is_none(),
        "why_not": why_not,
        "version": engine.result_version(),
        "about": engine.about(),
        "generations": engine.releases().map(|releases| {
            json!({ "senders": generation(&releases.senders), "receiver": generation(&releases.receiver) })
        }),
        "real_time": engine.is_real_time(),
        "cc": engine.controllers().iter().map(describe_controller).collect::<Vec<_>>(),
        "lacks": engine.lacks().iter().map(describe_lack).collect::<Vec<_>>(),
        "honours": engine.honours(),
    })
}

/// Returns the simulator's generation of Linux that is nearest to a kernel.
fn generation(release: &str) -> Option<&'static str> {
    Kernel::nearest(release).map(Kernel::name)
}

fn describe_controller(controller: &Controller) -> Value {
    let described = |describe: fn(&Param) -> Value| -> Map<String, Value> {
        controller.params.iter().map(|param| (param.name.to_owned(), describe(param))).collect()
    };
    json!({
        "name": controller.name,
        "about": controller.about,
        "params": described(describe_param),
        "ranges": described(|param| json!({ "min": param.min, "max": param.max, "whole": param.is_whole })),
    })
}

fn describe_param(param: &Param) -> Value {
    let about = param.about.trim_end_matches('.');
    json!(format!("{about}: {} to {}. Default: {}.", param.min, param.max, param.default))
}

fn describe_lack(Lack { name, why, hint }: &Lack) -> Value {
    json!({ "name": name, "why": why, "hint": hint })
}

fn summarise(engine: &dyn Engine) -> String {
    let name = engine.name();
    let state =
        engine.why_not().map_or_else(String::new, |why| format!("{name}: unavailable on this machine: {why}\n"));
    let controllers: Vec<String> = engine.controllers().into_iter().map(|controller| controller.name).collect();
    let lacks = engine
        .lacks()
        .into_iter()
        .map(|Lack { name: cc, why, hint }| format!("{name}: {cc} is unavailable: {why}; {hint}\n"));
    let lacks: String = lacks.collect();
    format!("{name}: {}\n{state}{name}: congestion controls: {}\n{lacks}", engine.about(), controllers.join(", "))
}
