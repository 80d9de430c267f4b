//! The interface of engines, their input and their output.

pub use thalweg_lab::run::{Failure, Job, Outcome, Performance};

use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;

/// Kind of packet records that an engine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// No records.
    Nothing,
    /// Rows of the table `packets`.
    Rows,
    /// Rows, and a capture of the packets.
    Capture,
}

/// Programs that `thalweg-engine shell` can run on the paths of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// No programs.
    None,
    /// Commands without a terminal and without services of the machine, because they run in virtual time.
    Commands,
    /// All programs, including interactive ones.
    All,
}

/// Releases of Linux, such as `6.18.44-cloud`.
pub struct Releases {
    /// Of the hosts that send.
    pub senders: String,
    /// Of the receiver.
    pub receiver: String,
}

/// An engine, which runs experiments.
pub trait Engine: Sync {
    /// Returns the name in a plan.
    fn name(&self) -> &'static str;

    /// Returns a one-line description.
    fn about(&self) -> &'static str;

    /// Returns the version of its results, which changes whenever the same experiment would produce different tables.
    fn result_version(&self) -> String;

    /// Returns the requirement that this machine lacks; `None` if the engine can run.
    fn why_not(&self) -> Option<String>;

    /// Returns the available congestion controls.
    fn controllers(&self) -> Vec<Controller>;

    /// Returns the congestion controls that this machine could have, and does not have now.
    fn lacks(&self) -> Vec<Lack> {
        Vec::new()
    }

    /// Returns the scenario keys that it honours, in the notation of `docs/reference/engine-protocol.md`.
    fn honours(&self) -> &'static [&'static str];

    /// Returns the releases of the kernels that run the hosts; `None` if it has no kernel.
    fn releases(&self) -> Option<Releases> {
        None
    }

    /// Returns whether experiments run in real time: one of ten seconds takes ten seconds, and concurrent ones disturb
    /// each other.
    fn is_real_time(&self) -> bool {
        false
    }

    /// Returns the kind of packet records that it supports.
    fn records(&self) -> Records {
        Records::Nothing
    }

    /// Returns which programs `thalweg-engine shell` can run on its paths.
    fn carries(&self) -> Programs {
        Programs::None
    }

    /// Checks whether this machine can run an experiment, without running it. What [`Engine::honours`] excludes need
    /// not be checked again.
    ///
    /// # Errors
    /// The first requirement that is not met.
    fn check(&self, _: &Experiment, _: &Traces) -> Result<(), thalweg_lab::Error> {
        Ok(())
    }

    /// Runs an experiment, and stops soon after it is cancelled.
    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure>;
}

/// A congestion control of an engine.
pub struct Controller {
    /// Name in `flow.cc`.
    pub name: String,
    /// One-line description.
    pub about: String,
    /// Parameters.
    pub params: Vec<&'static thalweg_cc::Param>,
}

/// A congestion control that is missing on this machine.
pub struct Lack {
    /// Name in `flow.cc`.
    pub name: String,
    /// Reason why it is unavailable.
    pub why: String,
    /// Hint for making it available.
    pub hint: String,
}

impl Lack {
    /// Returns the lack of an algorithm for a reason reported by the lab.
    pub fn of(name: &str, why: thalweg_lab::Error) -> Lack {
        Lack { name: name.to_owned(), why: why.message, hint: why.hint }
    }
}
