//! The interface of engines, their input and their output.

pub use thalweg_lab::run::{Failure, Job, Outcome, Performance};

use thalweg_trace::Sink;

/// The kind of packet records that an engine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Nothing.
    Nothing,
    /// Rows of the table `packets`.
    Rows,
    /// Rows, and a capture of the packets themselves.
    Capture,
}

/// Programs of the user's that can run on the paths of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// None.
    None,
    /// Commands without a terminal or access to anything outside the path: they run in virtual time.
    Commands,
    /// All, interactive ones among them.
    All,
}

/// An engine, which carries the packets.
pub trait Engine: Sync {
    /// Name in a plan.
    fn name(&self) -> &'static str;

    /// One-line description.
    fn about(&self) -> &'static str;

    /// Version of its results: it changes whenever the same experiment would produce different tables.
    fn result_version(&self) -> String;

    /// Returns the requirement that this machine lacks; `None` if the engine can run.
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

    /// Returns the kind of packet records that it supports.
    fn records(&self) -> Records {
        Records::Nothing
    }

    /// Which programs of the user's can run on its paths.
    fn carries(&self) -> Programs {
        Programs::None
    }

    /// Runs an experiment, and stops soon after it is cancelled.
    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure>;
}

/// A congestion control that an engine has.
pub struct Controller {
    /// Name in `flow.cc`.
    pub name: String,
    /// One-line description.
    pub about: String,
    /// Parameters: name, and effect with unit and default.
    pub params: Vec<(String, String)>,
}

/// A congestion control that an engine could have.
pub struct Lack {
    /// Name in `flow.cc`.
    pub name: String,
    /// Reason why it is unavailable.
    pub why: String,
    /// Remedy.
    pub hint: String,
}

impl Lack {
    /// The lack of an algorithm for a reason that the lab gives.
    pub fn of(name: &str, why: thalweg_lab::Error) -> Lack {
        Lack { name: name.to_owned(), why: why.message, hint: why.hint }
    }
}
