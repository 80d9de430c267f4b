//! Sources of the congestion controls of a guest: its kernel, modules and eBPF objects of the user, and the built-in
//! algorithms of the agent.

use super::built_in::is_built_in;
use super::settings::settings;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use thalweg_plan::plan::{CcFile, CcFileKind, Experiment, Flow};

/// A file of a guest: path and content.
pub(crate) type File = (String, Vec<u8>);

/// Folder of the user's own files in a guest.
const FOLDER: &str = "cc";

/// Source of a congestion control in a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    /// The guest's kernel must have it, built in or as a module.
    Kernel {
        /// Name.
        name: String,
    },
    /// A module in a file of the guest registers it.
    Module {
        /// Name.
        name: String,
        /// Path of the module in the guest.
        file: String,
    },
    /// The agent loads it.
    Agent {
        /// Name.
        name: String,
        /// Argument of the agent's load command: a file of the guest, or a name.
        what: String,
        /// Parameters, each as `PARAM=VALUE`.
        settings: Vec<String>,
    },
}

impl Algorithm {
    /// Returns the name of the algorithm.
    pub fn name(&self) -> &str {
        match self {
            Algorithm::Kernel { name } | Algorithm::Module { name, .. } | Algorithm::Agent { name, .. } => name,
        }
    }
}

/// Returns the algorithms that the flows of a guest require, and the files for them.
///
/// # Errors
/// `bad-cc`: a file has changed or cannot be read, or flows use one name for different algorithms; those of
/// [`algorithm_of`].
pub(crate) fn needed(experiment: &Experiment, flows: &[usize]) -> Result<(Vec<Algorithm>, Vec<File>), Error> {
    let mut needed: BTreeMap<&str, (Algorithm, Option<&str>)> = BTreeMap::new();
    let mut files = Vec::new();
    for flow in flows.iter().map(|flow| &experiment.flows[*flow]) {
        let algorithm = algorithm_of(flow)?;
        let content = flow.cc_file.as_ref().map(|file| file.sha256.as_str());
        if let Some(other) = needed.get(flow.cc.as_str()) {
            if *other != (algorithm, content) {
                let message =
                    format!("flows.{}.cc: another flow of this host requests a different `{}`", flow.name, flow.cc);
                return Err(Error::new("bad-cc", message, "use another host or another name for one of the two flows"));
            }
            continue;
        }
        if let (Some(file), Algorithm::Module { file: place, .. } | Algorithm::Agent { what: place, .. }) =
            (&flow.cc_file, &algorithm)
        {
            files.push((place.clone(), read(flow, file)?));
        }
        needed.insert(&flow.cc, (algorithm, content));
    }
    Ok((needed.into_values().map(|(algorithm, _)| algorithm).collect(), files))
}

/// Determines the source of a flow's algorithm.
///
/// # Errors
/// Those of [`settings`].
pub(crate) fn algorithm_of(flow: &Flow) -> Result<Algorithm, Error> {
    let name = flow.cc.clone();
    let settings = settings(flow)?;
    Ok(match &flow.cc_file {
        None if is_built_in(&name) => Algorithm::Agent { what: name.clone(), name, settings },
        None => Algorithm::Kernel { name },
        Some(CcFile { kind: CcFileKind::Module, .. }) => {
            Algorithm::Module { file: format!("{FOLDER}/{name}.ko"), name }
        }
        Some(CcFile { kind: CcFileKind::Bpf, .. }) => {
            Algorithm::Agent { what: format!("{FOLDER}/{name}.bpf.o"), name, settings }
        }
    })
}

fn read(flow: &Flow, file: &CcFile) -> Result<Vec<u8>, Error> {
    let bad = |found: String| {
        Error::new("bad-cc", format!("flows.{}.cc: {}: {found}", flow.name, file.path), "run the same command again")
    };
    let bytes = fs::read(&file.path).map_err(|error| bad(error.to_string()))?;
    let mut hasher = Sha256::new();
    hasher.update(&bytes);
    let sha256 = crate::cache::hexadecimal(hasher);
    if sha256 == file.sha256 { Ok(bytes) } else { Err(bad("it has changed since the plan was made".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::super::built_in::{BBR_AUTO, BBR_CPU, BBR_TUNED, BBR3};
    use super::*;

    fn experiment(change: impl FnOnce(&mut [Flow])) -> Experiment {
        let mut experiment: Experiment =
            serde_json::from_str(include_str!("../../../engine/tests/data/experiment.json")).unwrap();
        change(&mut experiment.flows);
        experiment
    }

    fn set(flow: &mut Flow, cc: &str, params: &[(&str, f64)]) {
        flow.cc = cc.to_owned();
        flow.cc_params = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    }

    fn error(change: impl FnOnce(&mut [Flow])) -> Error {
        needed(&experiment(change), &[0, 1]).unwrap_err()
    }

    #[test]
    fn a_file_is_copied_into_the_guest_only_if_it_matches_the_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tcp_mine.ko");
        fs::write(&path, "code").unwrap();
        let mut hasher = Sha256::new();
        hasher.update("code");
        let file = CcFile {
            kind: CcFileKind::Module,
            path: path.display().to_string(),
            sha256: crate::cache::hexadecimal(hasher),
        };
        let with_file = |flows: &mut [Flow]| {
            flows[0] = Flow { cc: "mine".to_owned(), cc_file: Some(file.clone()), ..flows[0].clone() }
        };
        let (algorithms, files) = needed(&experiment(with_file), &[0]).unwrap();
        assert_eq!(algorithms, [Algorithm::Module { name: "mine".to_owned(), file: "cc/mine.ko".to_owned() }]);
        assert_eq!(files, [("cc/mine.ko".to_owned(), b"code".to_vec())]);
        fs::write(&path, "other code").unwrap();
        let error = error(with_file);
        assert!(error.message.contains("tcp_mine.ko: it has changed"), "{error}");
    }

    #[test]
    fn built_in_agent_algorithms_are_loaded_with_the_parameters_of_the_flow() {
        let loaded = |cc: &str, params: &[(&str, f64)]| {
            let (mut algorithms, _) = needed(&experiment(|flows| set(&mut flows[0], cc, params)), &[0]).unwrap();
            match algorithms.remove(0) {
                Algorithm::Agent { settings, .. } => settings,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(loaded(BBR_CPU, &[("rule", 0.0)]), ["rule=paper"]);
        assert_eq!(loaded(BBR3, &[]), [""; 0]);
        assert_eq!(loaded(BBR3, &[("cpu_rule", 2.0)]), ["rule=schedule"]);
        let tuned = loaded(BBR_TUNED, &[("probe_gain", 1.5), ("probe_clock", 1.0)]);
        assert_eq!(tuned, ["probe_clock=1", "probe_gain=1.5"]);
        assert_eq!(loaded(BBR_AUTO, &[("auto_weight", 0.5)]), ["auto_weight=0.5"]);
    }

    #[test]
    fn unsupported_parameters_of_an_algorithm_are_rejected() {
        let refused = |cc: &str, param: &str, value: f64| error(|flows| set(&mut flows[0], cc, &[(param, value)]));
        assert!(refused(BBR_CPU, "rule", 0.5).message.contains("found 0.5, expected a whole number from 0 to 1"));
        assert!(refused(BBR3, "cpu_rule", 3.0).message.contains("expected a whole number from 0 to 2"));
        assert_eq!(refused(BBR3, "rule", 0.0).code, "not-honoured");
        assert!(refused(BBR_TUNED, "probe_gain", 9.0).message.contains("expected a number from 1 to 1.9"));
        assert!(refused(BBR_TUNED, "auto_weight", 0.5).message.contains("cc_params.auto_weight"));
        assert!(refused(BBR_AUTO, "auto_weight", 2.0).message.contains("expected a number from 0.01 to 1"));
        let unknown = refused(BBR_TUNED, "gain", 1.0);
        assert!(unknown.message.contains("cc_params.gain") && unknown.message.contains("probe_gain"), "{unknown}");
        assert_eq!(refused("cubic", "rule", 0.0).code, "not-honoured");
    }

    #[test]
    fn flows_of_a_host_cannot_load_one_algorithm_with_different_parameters() {
        let error = error(|flows| {
            for (flow, rule) in flows.iter_mut().zip([0.0, 1.0]) {
                set(flow, BBR_CPU, &[("rule", rule)]);
            }
        });
        assert!(error.message.contains("another flow of this host"), "{error}");
    }

    #[test]
    fn flows_of_a_host_cannot_load_different_files_under_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = error(|flows| {
            for (number, flow) in flows.iter_mut().take(2).enumerate() {
                let path = folder.path().join(format!("{number}.ko"));
                let content = format!("code {number}");
                fs::write(&path, &content).unwrap();
                let sha256 = crate::cache::hexadecimal(Sha256::new().chain_update(content));
                flow.cc = "mine".to_owned();
                flow.cc_file = Some(CcFile { path: path.display().to_string(), kind: CcFileKind::Module, sha256 });
            }
        });
        assert!(error.message.contains("another flow of this host"), "{error}");
    }
}
