//! Congestion controls that a guest's kernel does not have: modules and eBPF of the user, and what the agent carries.
//!
//! eBPF is loaded inside by `thalweg-agent`, which stands in the guest's first file system if it is on the machine.

use super::built_in::{BBR_CPU, is_built_in};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use thalweg_plan::plan::{CcFile, CcFileKind, Experiment, Flow};

/// A file of a guest: its place, and what is in it.
pub(crate) type File = (String, Vec<u8>);

/// The parameter that chooses its rule, and the rules by its values, as the agent names them.
const RULE: &str = "rule";
const RULES: [&str; 2] = ["paper", "schedule"];

/// Folder of files of one's own in a guest.
const FOLDER: &str = "cc";

/// How a guest comes by a congestion control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    /// Its kernel has it, as a module or built in.
    Kernel {
        /// Its name.
        name: String,
    },
    /// A module in this file of the guest registers it.
    Module {
        /// Its name.
        name: String,
        /// The file.
        file: String,
    },
    /// The agent loads it.
    Agent {
        /// Its name.
        name: String,
        /// What the agent is told to load: a file of the guest, or a name.
        what: String,
        /// The rule to load it with.
        rule: Option<String>,
    },
}

impl Algorithm {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Algorithm::Kernel { name } | Algorithm::Module { name, .. } | Algorithm::Agent { name, .. } => name,
        }
    }
}

/// What the flows of a guest need, and the files for it.
///
/// # Errors
/// `bad-cc`: a file is not what it was, two flows want different things by one name, or a parameter is none.
pub(crate) fn needed(experiment: &Experiment, flows: &[usize]) -> Result<(Vec<Algorithm>, Vec<File>), Error> {
    let mut needed: BTreeMap<&str, Algorithm> = BTreeMap::new();
    let mut files = Vec::new();
    for flow in flows.iter().map(|flow| &experiment.flows[*flow]) {
        let algorithm = algorithm_of(flow)?;
        if let Some(known) = needed.get(flow.cc.as_str()) {
            if *known != algorithm {
                let message = format!("flows.{}.cc: another flow of this host wants another `{}`", flow.name, flow.cc);
                return Err(Error::new("bad-cc", message, "give one of them another host, or another name"));
            }
            continue;
        }
        if let (Some(file), Algorithm::Module { file: place, .. } | Algorithm::Agent { what: place, .. }) =
            (&flow.cc_file, &algorithm)
        {
            files.push((place.clone(), read(flow, file)?));
        }
        needed.insert(&flow.cc, algorithm);
    }
    Ok((needed.into_values().collect(), files))
}

/// Checks what is not a matter of the guests' kernel.
///
/// # Errors
/// `bad-cc`, `not-honoured`.
pub(crate) fn algorithm_of(flow: &Flow) -> Result<Algorithm, Error> {
    let name = flow.cc.clone();
    let rule = rule_of(flow)?;
    Ok(match &flow.cc_file {
        None if is_built_in(&name) => Algorithm::Agent { what: name.clone(), name, rule },
        None => Algorithm::Kernel { name },
        Some(CcFile { kind: CcFileKind::Module, .. }) => {
            Algorithm::Module { file: format!("{FOLDER}/{name}.ko"), name }
        }
        Some(CcFile { kind: CcFileKind::Bpf, .. }) => {
            Algorithm::Agent { what: format!("{FOLDER}/{name}.bpf.o"), name, rule: None }
        }
    })
}

/// The rule that a flow's parameters choose.
fn rule_of(flow: &Flow) -> Result<Option<String>, Error> {
    let place = |key: &str| format!("flows.{}.cc_params.{key}", flow.name);
    let is_bbr_cpu = flow.cc == BBR_CPU && flow.cc_file.is_none();
    if let Some(other) = flow.cc_params.keys().find(|key| !is_bbr_cpu || *key != RULE) {
        let message = format!("{}: the algorithms of a kernel have no such parameter of a flow", place(other));
        return Err(Error::new("not-honoured", message, "leave it out, or use --engine sim"));
    }
    let Some(value) = flow.cc_params.get(RULE) else { return Ok(None) };
    let index = RULES.iter().zip(0u8..).find(|(_, number)| f64::from(*number) == *value).map(|(name, _)| *name);
    index.map(|name| Some(name.to_owned())).ok_or_else(|| {
        let message = format!("{}: found {value}, expected a whole number from 0 to {}", place(RULE), RULES.len() - 1);
        Error::new("invalid-experiment", message, format!("0 is the rule {}, 1 the rule {}", RULES[0], RULES[1]))
    })
}

fn read(flow: &Flow, file: &CcFile) -> Result<Vec<u8>, Error> {
    let bad = |found: String| {
        Error::new("bad-cc", format!("flows.{}.cc: {}: {found}", flow.name, file.path), "give the same command again")
    };
    let bytes = fs::read(&file.path).map_err(|error| bad(error.to_string()))?;
    let mut hasher = Sha256::new();
    hasher.update(&bytes);
    let sha256 = crate::cache::hexadecimal(hasher);
    if sha256 == file.sha256 { Ok(bytes) } else { Err(bad("it has changed since the plan was made".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::super::built_in::BBR3;
    use super::*;

    fn experiment(change: impl FnOnce(&mut [Flow])) -> Experiment {
        let mut experiment: Experiment =
            serde_json::from_str(include_str!("../../../engine/tests/data/experiment.json")).unwrap();
        change(&mut experiment.flows);
        experiment
    }

    fn error(change: impl FnOnce(&mut [Flow])) -> Error {
        needed(&experiment(change), &[0, 1]).unwrap_err()
    }

    #[test]
    fn a_file_goes_into_the_guest_if_it_is_the_one_that_was_planned() {
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
    fn a_rule_is_chosen_by_number_and_by_bbr_cpu_alone() {
        let rule = |value: f64| {
            move |flows: &mut [Flow]| {
                flows[0].cc = BBR_CPU.to_owned();
                flows[0].cc_params.insert(RULE.to_owned(), value);
            }
        };
        let (algorithms, _) = needed(&experiment(rule(0.0)), &[0]).unwrap();
        let expected =
            Algorithm::Agent { name: BBR_CPU.to_owned(), what: BBR_CPU.to_owned(), rule: Some("paper".to_owned()) };
        assert_eq!(algorithms, [expected]);
        assert!(error(rule(0.5)).message.contains("found 0.5, expected a whole number from 0 to 1"));
        let elsewhere = error(|flows| {
            flows[0].cc_params.insert(RULE.to_owned(), 0.0);
        });
        assert_eq!(elsewhere.code, "not-honoured");
    }

    #[test]
    fn version_3_is_loaded_by_the_agent_and_has_no_rule() {
        let (algorithms, _) = needed(&experiment(|flows| flows[0].cc = BBR3.to_owned()), &[0]).unwrap();
        assert_eq!(algorithms, [Algorithm::Agent { name: BBR3.to_owned(), what: BBR3.to_owned(), rule: None }]);
        let error = error(|flows| {
            flows[0].cc = BBR3.to_owned();
            flows[0].cc_params.insert(RULE.to_owned(), 0.0);
        });
        assert_eq!(error.code, "not-honoured");
    }

    #[test]
    fn one_name_means_one_thing_on_a_host() {
        let error = error(|flows| {
            for (flow, rule) in flows.iter_mut().zip([0.0, 1.0]) {
                flow.cc = BBR_CPU.to_owned();
                flow.cc_params.insert(RULE.to_owned(), rule);
            }
        });
        assert!(error.message.contains("another flow of this host"), "{error}");
    }
}
