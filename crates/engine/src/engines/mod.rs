//! The engines: one file each, and the list of them.

mod sim;

use std::collections::BTreeMap;
use thalweg_plan::plan::Experiment;
use thalweg_trace::Sink;
use thalweg_units::Span;

/// Every engine, the default first.
pub const ENGINES: &[&dyn Engine] = &[&sim::Sim];

/// What carries the packets.
pub trait Engine: Sync {
    /// Name in a plan.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// Version of its results: it changes whenever the same experiment gives other tables.
    fn result_version(&self) -> String;

    /// What this machine lacks to run it; nothing if it can run.
    fn why_not(&self) -> Option<String>;

    /// The congestion controls that it has.
    fn controllers(&self) -> Vec<Controller>;

    /// Keys of the scenario that it honours, as `docs/reference/engine-protocol.md` writes them.
    fn honours(&self) -> &'static [&'static str];

    /// Runs an experiment, and stops soon after `is_cancelled` says so.
    fn run(
        &self,
        experiment: &Experiment,
        traces: &BTreeMap<String, Vec<u64>>,
        sink: &mut dyn Sink,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Summary, Failure>;
}

/// A congestion control that an engine has.
pub struct Controller {
    /// Name in `flow.cc`.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// Its parameters: name, and what it does with unit and default.
    pub params: Vec<(String, String)>,
}

/// What came out besides the tables.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// How long the experiment took on its own clock.
    pub simulated: Span,
    /// Packets that passed the bottleneck.
    pub packets: u64,
}

/// Why there are no tables.
#[derive(Clone, Debug)]
pub enum Failure {
    /// `is_cancelled` said so.
    Cancelled,
    /// Something is wrong with the experiment.
    Failed {
        /// Short name of the reason.
        code: &'static str,
        /// The reason.
        message: String,
    },
}

/// The engine of this name.
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name)
}
