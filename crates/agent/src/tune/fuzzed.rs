//! Entry points of the tuner's parsers, for tests with damaged files.

use super::arms::Offer;
use super::decision_engine::tests::{Line, offer};
use super::prefixes;
use super::setup::Setup;
use super::state::State;
use clap::Parser;
use std::collections::BTreeSet;
use std::path::Path;
use thalweg_policy::Tree;

fn set_up(option: &str, file: &Path) {
    let line = ["tune", option, file.to_str().unwrap()];
    let offer: Offer = offer();
    if let Ok(setup) = Setup::new(&Line::parse_from(line).options, &offer) {
        let _ = setup.lines();
        setup.guard("cubic").expect("cubic is an arm");
    }
}

/// Reads settings.
pub fn settings(file: &Path) {
    set_up("--config", file);
}

/// Reads a policy file.
pub fn policy(file: &Path) {
    set_up("--policy", file);
}

/// Reads a table of networks.
pub fn table(file: &Path) {
    let wanted: BTreeSet<String> = ["as", "country"].map(str::to_owned).into();
    let _ = prefixes::read(file, &wanted, &Tree::default());
}

/// Reads learned state.
pub fn state(file: &Path) {
    let _ = State::open(file);
}
