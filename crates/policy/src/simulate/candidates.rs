//! The policies by name, and their candidate settings.

use super::contender::{Contender, Player};
use super::play::Simulation;
use crate::arm::{ArmId, Arms};
use crate::catalog::AnyPolicy;
use crate::guard::{Guard, GuardSettings};
use crate::objective::Objective;
use crate::policies::{
    Ab, AbUnit, Bayes, BayesSettings, Bpftune, BpftuneKey, BpftuneSettings, Greedy, GreedySettings, Rules, Static, Ucb,
    UcbSettings,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Rules of the study imc19-when-to-use-bbr.
const RULES: &str = r#"{
    "format": 1,
    "default": "cubic",
    "rules": [
        {"name": "lossy", "algorithm": "bbr", "when": {"loss_ratio": {"at_least": 0.01, "at_most": 0.1}}},
        {"name": "shallow", "algorithm": "bbr", "when": {"buffer_bdp": {"at_most": 0.15}}},
        {"name": "deep", "algorithm": "cubic", "when": {"buffer_bdp": {"at_least": 0.5}}}
    ]
}"#;

/// The name of a policy is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a policy; expected one of {known}")]
pub struct UnknownPolicy {
    /// The unknown name.
    pub name: String,
    /// The available names.
    pub known: String,
}

impl Contender {
    /// The names of all policies, in the order of tables.
    pub const NAMES: [&'static str; 12] = [
        "static cubic",
        "static bbr",
        "ab",
        "rules",
        "bpftune",
        "bpftune by destination",
        "ucb",
        "epsilon-greedy",
        "bayes",
        "ucb, guarded",
        "epsilon-greedy, guarded",
        "bayes, guarded",
    ];

    /// Returns a policy with each of its candidate settings.
    ///
    /// # Errors
    /// If the policy is unknown.
    pub fn candidates(name: &str, simulation: &Simulation) -> Result<Vec<Contender>, UnknownPolicy> {
        let (arms, objective) = (simulation.arms(), simulation.objective());
        let bare = |policy: AnyPolicy, settings: Value| Contender {
            name: name.to_owned(),
            settings,
            player: Player::Bare(Box::new(policy)),
        };
        let bbr = arms.find("bbr").unwrap_or(arms.default());
        let only = |arm: ArmId| bare(AnyPolicy::Static(Static::only(arms.clone(), arm)), json!({}));
        let bpftune = |key: BpftuneKey| -> Vec<Contender> {
            let with = |learning_rate: u8| {
                let settings = BpftuneSettings { key, learning_rate, ..BpftuneSettings::default() };
                bare(AnyPolicy::Bpftune(Bpftune::new(arms.clone(), settings)), json!({"learning_rate": learning_rate}))
            };
            (0..=4).map(with).collect()
        };
        Ok(match name {
            "static cubic" => vec![only(arms.default())],
            "static bbr" => vec![only(bbr)],
            "ab" => {
                let ab = Ab::new(arms.clone(), bbr, 0.5, AbUnit::Connection, 1);
                vec![bare(AnyPolicy::Ab(ab), json!({"share": 0.5}))]
            }
            "rules" => vec![bare(AnyPolicy::Rules(rules(arms)), json!({"study": "imc19-when-to-use-bbr"}))],
            "bpftune" => bpftune(BpftuneKey::Gateway),
            "bpftune by destination" => bpftune(BpftuneKey::Destination),
            "ucb" => grid(&[0.05, 0.1, 0.2, 0.5])
                .map(|(width, memory)| {
                    let ucb = Ucb::new(arms.clone(), *objective, UcbSettings { width, memory });
                    bare(AnyPolicy::Ucb(ucb), json!({"width": width, "memory": memory}))
                })
                .collect(),
            "epsilon-greedy" => grid(&[0.005, 0.01, 0.02, 0.05])
                .map(|(epsilon, memory)| {
                    let greedy = Greedy::new(arms.clone(), *objective, GreedySettings { epsilon, memory });
                    bare(AnyPolicy::Greedy(greedy), json!({"epsilon": epsilon, "memory": memory}))
                })
                .collect(),
            "bayes" => vec![bare(AnyPolicy::Bayes(bayes(arms, objective)), json!({}))],
            _ => match name.strip_suffix(", guarded") {
                Some(bare @ ("ucb" | "epsilon-greedy" | "bayes")) => {
                    let bare = Contender::candidates(bare, simulation)?;
                    bare.into_iter().map(|contender| contender.guarded(name, simulation)).collect()
                }
                _ => return Err(UnknownPolicy { name: name.to_owned(), known: Contender::NAMES.join(", ") }),
            },
        })
    }

    fn guarded(mut self, name: &str, simulation: &Simulation) -> Contender {
        let settings = GuardSettings::default();
        self.settings["holdout"] = json!(settings.holdout);
        let player = match self.player {
            Player::Bare(policy) => {
                let guard = Guard::new(simulation.arms().clone(), *policy, *simulation.objective(), settings);
                Player::Guarded(Box::new(guard))
            }
            guarded @ Player::Guarded(_) => guarded,
        };
        Contender { name: name.to_owned(), settings: self.settings, player }
    }
}

fn bayes(arms: &Arms, objective: &Objective) -> Bayes {
    Bayes::new(arms.clone(), *objective, BayesSettings::default())
}

fn rules(arms: &Arms) -> Rules {
    let file = serde_json::from_str(RULES).expect("it is JSON");
    Rules::from_value(arms.clone(), file, Arc::default()).expect("the population has these arms")
}

fn grid(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    values.iter().flat_map(|&value| [50.0, 200.0, 1000.0].map(|memory| (value, memory)))
}
