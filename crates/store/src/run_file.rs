//! `run.json`: the plan, the engine and the machine of a run. Written once.

use crate::atomic::Pending;
use crate::error::Error;
use crate::id::{Id, experiment_id};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use thalweg_plan::plan::{FORMAT, Plan};

/// Name of the file.
pub const FILE: &str = "run.json";

/// The content of `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFile {
    /// Version of the format of the run directory: 1.
    pub format: u32,
    /// Name of the engine.
    pub engine: String,
    /// Version of the program that created the directory.
    pub engine_version: String,
    /// Version of the engine's results: the same plan and version yield the same tables on a deterministic engine.
    pub result_version: String,
    /// The complete plan, including the scenario as text.
    pub plan: Plan,
    /// The ids of the plan's experiments, in the plan's order.
    pub experiments: Vec<ExperimentId>,
    /// The machine that created the directory.
    pub host: Host,
    /// Creation time of the directory (RFC 3339).
    pub created: String,
    /// The user's command, as a list of words, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// An experiment of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentId {
    /// Base name of the experiment's files.
    pub id: Id,
    /// Number of the sweep point.
    pub experiment: u32,
    /// Number of the repetition.
    pub repetition: u32,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Name of the distribution.
    pub os: String,
    /// Name, release and build of the kernel.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// Number of CPUs that the process may use.
    pub cores: usize,
}

impl RunFile {
    /// Creates the description of a run of `plan` that starts now.
    pub fn new(
        plan: Plan,
        engine_version: &str,
        result_version: &str,
        host: Host,
        command: Option<Vec<String>>,
    ) -> RunFile {
        let experiments = plan
            .experiments
            .iter()
            .map(|experiment| ExperimentId {
                id: experiment_id(&plan.engine, result_version, experiment, &plan.traces),
                experiment: experiment.experiment,
                repetition: experiment.repetition,
            })
            .collect();
        RunFile {
            format: FORMAT,
            engine: plan.engine.clone(),
            engine_version: engine_version.to_owned(),
            result_version: result_version.to_owned(),
            plan,
            experiments,
            host,
            created: crate::journal::now(),
            command,
        }
    }

    /// Reads the file of `directory`; `None` if it does not exist.
    pub(crate) fn read(directory: &Path) -> Result<Option<RunFile>, Error> {
        let path = directory.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(directory, &path, error)),
        };
        match serde_json::from_slice(&bytes) {
            Ok(run) => Ok(Some(run)),
            Err(error) => Err(Error::BadRunFile { file: path, why: error.to_string() }),
        }
    }

    /// Writes the file of `directory`.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(FILE);
        let mut bytes = serde_json::to_vec(self).expect("a run file is plain data");
        bytes.push(b'\n');
        let write = || {
            let mut file = Pending::create(&path)?;
            file.write_all(&bytes)?;
            file.sync()?;
            file.publish()
        };
        write().map_err(|source| Error::io(directory, &path, source))
    }

    /// Returns the actual and the expected value of the first difference to `other` that prevents sharing a directory;
    /// `None` without one.
    pub(crate) fn difference(&self, other: &RunFile) -> Option<(String, String)> {
        let both = |describe: &dyn Fn(&RunFile) -> String| Some((describe(self), describe(other)));
        if self.format != other.format {
            return both(&|run| format!("format {}", run.format));
        }
        if (&self.engine, &self.result_version) != (&other.engine, &other.result_version) {
            return both(&|run| {
                format!("a run on engine {}, version {} of its results", run.engine, run.result_version)
            });
        }
        if self.plan.name != other.plan.name {
            return both(&|run| format!("a run of scenario `{}`", run.plan.name));
        }
        if self.plan != other.plan {
            let found = format!("another plan of scenario `{}`, created {}", self.plan.name, self.created);
            return Some((found, "the same plan".to_owned()));
        }
        None
    }
}
