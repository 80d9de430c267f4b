//! The engine `vm`. Booting takes seconds, so each guest is used for several assertions.

mod ends;
mod flows;
mod programs;
mod refusals;

use crate::common::{self, Bench, ENGINE};
use crate::stage;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

fn capabilities(command: &mut Command) -> Value {
    let output = command.args(["capabilities", "--json"]).output().unwrap();
    let capabilities: Value = serde_json::from_slice(&output.stdout).unwrap();
    capabilities["engines"].as_array().unwrap().iter().find(|engine| engine["name"] == "vm").unwrap().clone()
}

/// Returns whether the engine can run here. In CI it must.
fn is_available() -> bool {
    let vm = capabilities(&mut Command::new(ENGINE));
    vm["available"] == true || stage::not_tested("the engine vm", vm["why_not"].as_str().unwrap_or_default())
}

fn bench(experiments: impl IntoIterator<Item = Value>) -> Bench {
    let mut plan = common::plan_of(experiments);
    plan["engine"] = json!("vm");
    Bench::with(&plan)
}

fn kernel() -> (PathBuf, PathBuf) {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    if let (Some(image), Some(modules)) = (named("THALWEG_VM_KERNEL"), named("THALWEG_VM_MODULES")) {
        return (image, modules);
    }
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    let folder = named("XDG_CACHE_HOME").unwrap_or_else(home).join("thalweg/vm/current");
    (folder.join("vmlinuz"), folder.join("modules"))
}
