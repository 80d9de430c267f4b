//! The engine `uml`. Its time is virtual, so most numbers are exact, regardless of the machine's load.

mod ends;
mod flows;
mod refusals;

use crate::common::{self, Bench};
use crate::stage;
use serde_json::{Value, json};
use std::process::Command;

/// Returns whether the engine can run here. In CI it must.
fn is_available() -> bool {
    let output = Command::new(common::ENGINE).args(["capabilities", "--json"]).output().unwrap();
    let capabilities: Value = serde_json::from_slice(&output.stdout).unwrap();
    let engines = capabilities["engines"].as_array().unwrap();
    let uml = engines.iter().find(|engine| engine["name"] == "uml").unwrap();
    uml["available"] == true || stage::not_tested("the engine uml", uml["why_not"].as_str().unwrap_or_default())
}

fn bench(experiments: impl IntoIterator<Item = Value>) -> Bench {
    let mut plan = common::plan_of(experiments);
    plan["engine"] = json!("uml");
    Bench::with(&plan)
}
