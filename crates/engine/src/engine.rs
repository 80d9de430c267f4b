//! What an engine is, what it is given, and what comes out.

use std::collections::BTreeMap;
use std::path::Path;
use thalweg_plan::plan::Experiment;
use thalweg_trace::Sink;
use thalweg_units::Span;

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

    /// Congestion controls that it could have here, and does not have now.
    fn lacks(&self) -> Vec<Lack> {
        Vec::new()
    }

    /// Keys of the scenario that it honours, as `docs/reference/engine-protocol.md` writes them.
    fn honours(&self) -> &'static [&'static str];

    /// Whether an experiment of ten seconds takes ten seconds. Two at a time would then disturb each other.
    fn is_real_time(&self) -> bool {
        false
    }

    /// Whether it can record packets where the scenario asks for it.
    fn records(&self) -> bool {
        false
    }

    /// Runs an experiment, and stops soon after it is cancelled.
    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Summary, Failure>;
}

/// An experiment that is to be run.
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its id.
    pub id: &'a str,
    /// The plan's capacity traces.
    pub traces: &'a BTreeMap<String, Vec<u64>>,
    /// Asked now and then: whether to stop.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Takes what the engine does to the machine, in whole lines, for `commands.log`.
    pub log: &'a dyn Fn(&str),
    /// Where recorded packets are to be captured, if they are.
    pub capture: Option<&'a Path>,
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

/// A congestion control that an engine could have.
pub struct Lack {
    /// Name in `flow.cc`.
    pub name: String,
    /// Why it is not there.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

impl Lack {
    /// The lack of an algorithm for a reason that the lab gives.
    pub fn of(name: &str, why: thalweg_lab::Error) -> Lack {
        Lack { name: name.to_owned(), why: why.message, hint: why.hint }
    }
}

/// What came out besides the tables.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How long the experiment took on its own clock.
    pub simulated: Span,
    /// Packets that passed the bottleneck.
    pub packets: u64,
    /// What the engine measured of itself, by names that carry their units.
    pub measured: BTreeMap<String, f64>,
    /// Why the experiment should not be believed; nothing if the engine has found no reason.
    pub untrustworthy: Vec<String>,
}

/// Why there are no tables.
#[derive(Clone, Debug)]
pub enum Failure {
    /// `is_cancelled` said so.
    Cancelled,
    /// Something is wrong with the experiment.
    Failed {
        /// Short name of the reason.
        code: String,
        /// The reason.
        message: String,
    },
}
