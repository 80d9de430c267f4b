//! The effective settings, from the command line, the configuration file and the machine.

use super::arms::{NEED_ECN, Offer};
use super::config::{self, Config, TreeKeys, unknown_arm};
use super::kernel::Override;
use super::options::{DEFAULT_STATE, Options};
use super::prefixes;
use crate::record::Detail;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use thalweg_policy::{
    Ab, AbUnit, AnyPolicy, Arm, ArmId, Arms, Attributes, Bayes, BayesSettings, Bpftune, BpftuneSettings, Family,
    Greedy, GreedySettings, Guard, GuardSettings, Objective, Prefix, Rules, RulesError, Static, Tree, Ucb, UcbSettings,
};
use thalweg_store::Problem;
use thalweg_units::{Span, Time};

const POLICIES: [&str; 6] = ["bayes", "ucb", "epsilon-greedy", "bpftune", "ab", "static"];

const GRACE: Duration = Duration::from_secs(300);

/// Default maximum number of destinations of a network namespace.
const DESTINATIONS: usize = 20_000;

/// Upper limit of `destinations`, below the number of rows in the kernel, which include those of networks.
const MAX_DESTINATIONS: usize = 30_000;

/// The effective settings.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The arms, with the default of the agent's own network namespace.
    pub arms: Arms,
    /// The overrides of prefixes.
    pub overrides: Vec<(Prefix, Override)>,
    /// Whether decisions are made but not set.
    pub is_dry_run: bool,
    /// Whether algorithms are also chosen for loopback, private and link-local addresses.
    pub has_private: bool,
    /// Grace time after the death of the daemon.
    pub grace: Duration,
    /// Path of the learned state.
    pub state: PathBuf,
    /// Level of detail of records.
    pub detail: Detail,
    /// Limits on the policy.
    pub guard: GuardSettings,
    /// The objective.
    pub objective: Objective,
    /// Name or file of the policy.
    pub policy_name: String,
    /// Algorithms that are not among the arms, each with the reason.
    pub left_out: Vec<String>,
    /// Shift of bpftune's loss rule for open connections; `None` without that rule.
    pub drop_shift: Option<u8>,
    policy: Chosen,
}

/// The type and the settings of a policy.
#[derive(Clone, Debug)]
enum Chosen {
    Bayes(BayesSettings),
    Ucb(UcbSettings),
    Greedy(GreedySettings),
    Bpftune(BpftuneSettings),
    /// If `treatment` is `None`, it is the first arm that is not the namespace's default.
    Ab {
        treatment: Option<ArmId>,
        share: f64,
        unit: AbUnit,
        seed: u64,
        until: Option<Time>,
    },
    Static(Vec<f64>),
    Rules(Box<Rules>),
}

impl Setup {
    /// Merges the settings with the machine's properties.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(options: &Options, offer: &Offer) -> Result<Setup, Problem> {
        let (config, place) = read(options)?;
        let (names, left_out) = names(options, &config, offer)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let arms = Arms::named(&names, &offer.default).expect("they were checked");
        Ok(Setup { left_out, ..Setup::of(options, config, &place, arms)? })
    }

    /// Reads the settings again. Returns those that take effect now, with the running values of the others, and the
    /// keys of changed settings that take effect only after a restart.
    ///
    /// # Errors
    /// If a setting is invalid, or valid only with other arms than those of the running agent.
    pub fn again(&self, options: &Options, offer: &Offer) -> Result<(Setup, Vec<&'static str>), Problem> {
        let (mut config, place) = read(options)?;
        let (names, left_out) = names(options, &config, offer)?;
        let mut stay = Vec::new();
        if !self.arms.iter().map(|(_, arm)| &arm.name).eq(&names) {
            stay.push("arms");
        }
        let new = Setup::of(options, config.clone(), &place, self.arms.clone()).map_err(|problem| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let fits_new_arms = Arms::named(&names, &offer.default)
                .is_ok_and(|arms| Setup::of(options, config.clone(), &place, arms).is_ok());
            if stay.contains(&"arms") && fits_new_arms { self.other_arms(&place, &names) } else { problem }
        })?;
        let mut new = if new.guard.tree == self.guard.tree {
            new
        } else {
            stay.push("tree");
            let leaf = |family| self.lengths(family).first().copied();
            config.tree = TreeKeys { v4: leaf(Family::V4), v6: leaf(Family::V6) };
            Setup::of(options, config, &place, self.arms.clone())?
        };
        for (key, differs) in [
            ("dry_run", new.is_dry_run != self.is_dry_run),
            ("private", new.has_private != self.has_private),
            ("grace", new.grace != self.grace),
            ("state", new.state != self.state),
            ("detail", new.detail != self.detail),
            ("objective.least", new.objective.least != self.objective.least),
            ("bpftune.has_loss_rule or bpftune.drop_shift", new.drop_shift != self.drop_shift),
        ] {
            if differs {
                stay.push(key);
            }
        }
        (new.is_dry_run, new.has_private, new.grace) = (self.is_dry_run, self.has_private, self.grace);
        new.drop_shift = self.drop_shift;
        (new.state, new.detail, new.objective.least) = (self.state.clone(), self.detail, self.objective.least);
        new.left_out = if stay.contains(&"arms") { self.left_out.clone() } else { left_out };
        Ok((new, stay))
    }

    fn other_arms(&self, place: &str, names: &[&str]) -> Problem {
        let arms: Vec<&str> = self.arms.iter().map(|(_, arm)| arm.name.as_str()).collect();
        Problem::refused(
            "needs-restart",
            place,
            format!("arms {}", names.join(", ")),
            &format!("the arms of the running agent: {}", arms.join(", ")),
            "restart the agent to change its arms",
        )
    }

    fn of(options: &Options, config: Config, place: &str, arms: Arms) -> Result<Setup, Problem> {
        let objective = objective(&config, place)?;
        let guard = guard(options, &config, place)?;
        let policy = chosen(options, &config, place, &arms, &guard)?;
        Ok(Setup {
            overrides: config.overrides(&arms, place)?,
            is_dry_run: options.dry_run || config.dry_run,
            has_private: options.private || config.private,
            grace: options.grace.or(config.grace).unwrap_or(GRACE),
            policy_name: policy_name(options, &config).to_owned(),
            state: options.state.clone().or(config.state).unwrap_or_else(|| DEFAULT_STATE.into()),
            detail: options.record.detail.or(config.detail).unwrap_or_default(),
            left_out: Vec::new(),
            arms,
            guard,
            objective,
            drop_shift: match &policy {
                Chosen::Bpftune(settings) if settings.has_loss_rule => Some(settings.drop_shift),
                _ => None,
            },
            policy,
        })
    }

    /// Returns the settings as lines of output.
    pub fn lines(&self) -> Vec<String> {
        let default = self.arms.default();
        let name = |(arm, of): (ArmId, &Arm)| {
            if arm == default { format!("{} (the default)", of.name) } else { of.name.clone() }
        };
        let arms: Vec<String> = self.arms.iter().map(name).collect();
        let held_out = 100.0 * self.guard.holdout;
        let mut lines = vec![
            format!("policy: {}", self.policy_name),
            format!("arms: {}; {held_out} % of the connections keep the default", arms.join(", ")),
        ];
        if let Chosen::Rules(rules) = &self.policy
            && rules.default_arm() != default
        {
            let [file, system] = [rules.default_arm(), default].map(|arm| &self.arms.arm(arm).name);
            lines
                .push(format!("where no rule applies, the policy sets {file}, and not {system}, the system's default"));
        }
        lines.extend(self.left_out.iter().map(|arm| format!("left out: {arm}")));
        lines
    }

    /// Returns a guard without data for a network namespace with this default; `None` if it is not an arm.
    pub fn guard(&self, default: &str) -> Option<Guard> {
        let arms = Arms::new(self.arms.iter().map(|(_, arm)| arm.clone()).collect(), default).ok()?;
        let (own, objective) = (arms.clone(), self.objective);
        let policy = match &self.policy {
            Chosen::Bayes(settings) => AnyPolicy::Bayes(Bayes::new(own, objective, settings.clone())),
            Chosen::Ucb(settings) => AnyPolicy::Ucb(Ucb::new(own, objective, *settings)),
            Chosen::Greedy(settings) => AnyPolicy::Greedy(Greedy::new(own, objective, *settings)),
            Chosen::Bpftune(settings) => AnyPolicy::Bpftune(Bpftune::new(own, *settings)),
            Chosen::Ab { treatment, share, unit, seed, until } => {
                let other = || own.iter().map(|(arm, _)| arm).find(|&arm| arm != own.default());
                let ab = Ab::new(own.clone(), treatment.or_else(other)?, *share, *unit, *seed);
                AnyPolicy::Ab(match until {
                    Some(end) => ab.until(*end),
                    None => ab,
                })
            }
            Chosen::Static(wishes) => AnyPolicy::Static(Static::of(own, wishes)),
            Chosen::Rules(rules) => AnyPolicy::Rules(rules.as_ref().clone()),
        };
        Some(Guard::new(arms, policy, objective, self.guard.clone()))
    }

    /// Returns the networks around a prefix that have rows, which are used for unseen destinations.
    pub fn networks(&self, prefix: Prefix) -> impl Iterator<Item = Prefix> + use<> {
        let lengths = self.lengths(prefix.family());
        lengths
            .into_iter()
            .skip(1)
            .filter(move |&length| length < prefix.length())
            .map(move |length| prefix.cut(length))
    }

    /// Returns the prefix lengths that have rows, the longest first.
    pub fn lengths(&self, family: Family) -> Vec<u8> {
        let address = match family {
            Family::V4 => Prefix::of(Ipv4Addr::UNSPECIFIED.into(), u8::MAX),
            Family::V6 => Prefix::of(Ipv6Addr::UNSPECIFIED.into(), u8::MAX),
        };
        let leaf = self.guard.tree.leaf_of(address);
        let above: Vec<u8> = self.guard.tree.ancestors(leaf).map(Prefix::length).collect();
        std::iter::once(leaf.length()).chain(above.last().copied().filter(|&length| length > 0)).collect()
    }

    /// Returns whether an arm may be drawn for a prefix: one that needs ECN only with the override `data_center`.
    pub fn may_use(&self, arm: &str, prefix: Prefix) -> bool {
        !NEED_ECN.contains(&arm) || self.override_around(prefix).is_some_and(|(_, what)| what == Override::DataCenter)
    }

    /// Returns the override with the longest prefix that contains `prefix`.
    pub fn override_around(&self, prefix: Prefix) -> Option<(Prefix, Override)> {
        let around = self.overrides.iter().filter(|(of, _)| of.has(prefix));
        around.max_by_key(|(of, _)| of.length()).copied()
    }
}

/// Reads the settings; returns them with their source for errors.
fn read(options: &Options) -> Result<(Config, String), Problem> {
    let config = options.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    Ok((config, options.config.as_ref().map_or("--config".to_owned(), |path| path.display().to_string())))
}

fn names(options: &Options, config: &Config, offer: &Offer) -> Result<(Vec<String>, Vec<String>), Problem> {
    let wanted = options.arms.as_deref().or(config.arms.as_deref());
    let has_ecn = config.overrides.iter().any(|entry| entry.data_center);
    let is_of_file = options.arms.is_none() && wanted.is_some();
    let named = |problem| match &options.config {
        Some(file) if is_of_file => Problem { place: format!("{}, arms", file.display()), ..problem },
        _ => problem,
    };
    let names = offer.arms(wanted, has_ecn).map_err(named)?;
    let left_out = offer.left_out(&names, wanted.is_some());
    Ok((names, left_out))
}

fn policy_name<'a>(options: &'a Options, config: &'a Config) -> &'a str {
    options.policy.as_deref().or(config.policy.as_deref()).unwrap_or("bayes")
}

fn refused(place: &str, found: impl std::fmt::Display, expected: &str) -> Problem {
    Problem::refused("bad-setting", place, found, expected, "docs/reference/agent-tune.md describes the settings")
}

/// Checks that a number is within a range, bounds included.
fn within(place: &str, name: &str, value: Option<f64>, least: f64, most: f64) -> Result<Option<f64>, Problem> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(refused(&format!("{place}: {name}"), value, &format!("a number from {least} to {most}")))
        }
        value => Ok(value),
    }
}

fn objective(config: &Config, place: &str) -> Result<Objective, Problem> {
    let (keys, usual) = (&config.objective, Objective::default());
    let price = within(place, "objective.retransmit_price", keys.retransmit_price, 0.0, 1000.0)?;
    let objective = Objective {
        least: keys.least.unwrap_or(usual.least),
        medium_from: keys.medium_from.unwrap_or(usual.medium_from),
        long_from: keys.long_from.unwrap_or(usual.long_from),
        retransmit_price: price.unwrap_or(usual.retransmit_price),
    };
    if objective.medium_from > objective.long_from {
        let found = format!("medium_from {}, long_from {}", objective.medium_from, objective.long_from);
        return Err(refused(&format!("{place}: objective"), found, "medium_from of at most long_from"));
    }
    Ok(objective)
}

fn guard(options: &Options, config: &Config, place: &str) -> Result<GuardSettings, Problem> {
    let (keys, usual) = (&config.guard, GuardSettings::default());
    let length = |name: &str, value: Option<u8>, usual: u8, most: u8| match value {
        Some(value) if !(1..=most).contains(&value) => {
            let found = format!("{value} bits");
            Err(refused(&format!("{place}: tree.{name}"), found, &format!("a length from 1 to {most}")))
        }
        value => Ok(value.unwrap_or(usual)),
    };
    let holdout = options.holdout.or(within(place, "holdout", config.holdout, 0.0, 1.0)?).unwrap_or(usual.holdout);
    let destinations = config.destinations.unwrap_or(DESTINATIONS);
    within(place, "destinations", Some(destinations as f64), 8.0, MAX_DESTINATIONS as f64)?;
    let least = within(place, "guard.least_holdout", keys.least_holdout, 0.0, 1.0)?.unwrap_or(usual.least_holdout);
    Ok(GuardSettings {
        tree: Tree::with_leaves(length("v4", config.tree.v4, 24, 32)?, length("v6", config.tree.v6, 48, 128)?),
        holdout,
        least_holdout: least.min(holdout),
        alpha: within(place, "guard.alpha", keys.alpha, 1e-9, 0.5)?.unwrap_or(usual.alpha),
        withdraw_for: keys.withdraw_for.map_or(usual.withdraw_for, span),
        most_prefixes: destinations,
    })
}

fn span(time: Duration) -> Span {
    Span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn chosen(
    options: &Options,
    config: &Config,
    place: &str,
    arms: &Arms,
    guard: &GuardSettings,
) -> Result<Chosen, Problem> {
    Ok(match policy_name(options, config) {
        "bayes" => {
            let (keys, usual) = (&config.bayes, BayesSettings::default());
            Chosen::Bayes(BayesSettings {
                tree: guard.tree.clone(),
                gain_sd: within(place, "bayes.gain_sd", keys.gain_sd, 0.01, 10.0)?.unwrap_or(usual.gain_sd),
                memory: within(place, "bayes.memory", keys.memory, 2.0, 1e9)?.unwrap_or(usual.memory),
                half_life: keys.half_life.map_or(usual.half_life, span),
                floor: within(place, "bayes.floor", keys.floor, 0.0, 1.0)?.unwrap_or(usual.floor),
                most_prefixes: guard.most_prefixes,
            })
        }
        "ucb" => {
            within(place, "ucb.width", Some(config.ucb.width), 0.0, 100.0)?;
            within(place, "ucb.memory", Some(config.ucb.memory), 1.0, 1e9)?;
            Chosen::Ucb(config.ucb)
        }
        "epsilon-greedy" => {
            within(place, "epsilon-greedy.epsilon", Some(config.greedy.epsilon), 0.0, 1.0)?;
            within(place, "epsilon-greedy.memory", Some(config.greedy.memory), 1.0, 1e9)?;
            Chosen::Greedy(config.greedy)
        }
        "bpftune" => {
            within(place, "bpftune.learning_rate", Some(config.bpftune.learning_rate.into()), 0.0, 4.0)?;
            Chosen::Bpftune(config.bpftune)
        }
        "ab" => ab(config, place, arms)?,
        "static" => weights(config, place, arms)?,
        file => Chosen::Rules(Box::new(rules(options, config, Path::new(file), arms, guard)?)),
    })
}

fn ab(config: &Config, place: &str, arms: &Arms) -> Result<Chosen, Problem> {
    let keys = &config.ab;
    let others: Vec<_> = arms.iter().filter(|(id, _)| *id != arms.default()).collect();
    let treatment = match (&keys.treatment, &others[..]) {
        (Some(name), _) => {
            let treatment =
                arms.find(name).ok_or_else(|| unknown_arm(&format!("{place}: ab.treatment"), name, arms))?;
            if treatment == arms.default() {
                let found = format!("ab.treatment = \"{name}\", which is the default of this machine");
                let expected = "an arm to compare with the default";
                let other = others.first().map_or("cubic", |(_, arm)| &arm.name);
                let hint = format!(
                    "remove treatment, or set another default: sysctl -w net.ipv4.tcp_congestion_control={other}"
                );
                return Err(Problem::refused("no-treatment", place, found, expected, &hint));
            }
            Some(treatment)
        }
        // Each network namespace uses the arm that is not its own default.
        (None, [_]) => None,
        (None, _) => {
            let names: Vec<&str> = others.iter().map(|(_, arm)| arm.name.as_str()).collect();
            let found = format!("several arms in addition to the default: {}", names.join(", "));
            let hint = format!("--arms {},{}", arms.arm(arms.default()).name, names[0]);
            let expected = "one arm to compare with the default";
            return Err(Problem::refused("no-treatment", "--policy ab", found, expected, &hint));
        }
    };
    let until = |text: &String| {
        let wrong = |_| {
            refused(&format!("{place}: ab.pilot_until"), format!("`{text}`"), "a time such as 2026-01-31T12:00:00Z")
        };
        let moment = humantime::parse_rfc3339_weak(text).map_err(wrong)?;
        Ok::<_, Problem>(Time(span(moment.duration_since(UNIX_EPOCH).unwrap_or_default()).0))
    };
    Ok(Chosen::Ab {
        treatment,
        share: within(place, "ab.share", keys.share, 0.0, 1.0)?.unwrap_or(0.5),
        unit: keys.unit.unwrap_or(AbUnit::Connection),
        seed: keys.seed,
        until: keys.pilot_until.as_ref().map(until).transpose()?,
    })
}

fn weights(config: &Config, place: &str, arms: &Arms) -> Result<Chosen, Problem> {
    let mut wishes = vec![0.0; arms.len()];
    for (name, wish) in &config.weights {
        let arm = arms.find(name).ok_or_else(|| unknown_arm(&format!("{place}: static"), name, arms))?;
        within(place, &format!("static.{name}"), Some(*wish), 0.0, 1e6)?;
        wishes[arm.index()] = *wish;
    }
    if wishes.iter().all(|wish| *wish == 0.0) {
        let (found, expected) = ("no probabilities", "a probability above 0 for at least one arm");
        let hint = "in the --config file, set for example bbr = 1 in the section [static]";
        return Err(Problem::refused("no-weights", "--policy static", found, expected, hint));
    }
    Ok(Chosen::Static(wishes))
}

fn rules(
    options: &Options,
    config: &Config,
    path: &Path,
    arms: &Arms,
    guard: &GuardSettings,
) -> Result<Rules, Problem> {
    let place = path.display().to_string();
    if !path.exists() {
        let expected = format!("one of {}, or a policy file", POLICIES.join(", "));
        let hint = "thalweg advise --policy FILE writes such a file; docs/reference/policy.md describes it";
        return Err(Problem::refused("unknown-policy", "--policy", format!("`{place}`"), &expected, hint));
    }
    let text = config::read(path)?;
    let hint = "docs/reference/policy.md describes the file";
    let value: Value =
        toml::from_str(&text).map_err(|error| config::bad(path, &text, &error, "a policy file", hint))?;
    let mut host: BTreeMap<String, String> = config.host.clone();
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    host.entry("machine".to_owned()).or_insert(machine);
    let columns = asked(&value);
    let table = options.prefixes.as_deref().or(config.prefixes.as_deref());
    let places = match table {
        Some(table) => prefixes::read(table, &columns, &guard.tree)?,
        None => Default::default(),
    };
    let attributes = Attributes { tree: guard.tree.clone(), host, places };
    Rules::from_value(arms.clone(), value, Arc::new(attributes)).map_err(|error| {
        let expected = "a policy that this agent can apply";
        let hint = match &error {
            RulesError::NoArm { name, .. } => {
                let names: Vec<&str> = arms.iter().map(|(_, arm)| arm.name.as_str()).chain([name.as_str()]).collect();
                format!("--arms {}", names.join(","))
            }
            RulesError::Unknowable { .. } if let Some(table) = table => format!(
                "{} has no such column: use a CSV table that has it, set the value under [host] in the --config file, \
                 or remove the rule",
                table.display()
            ),
            _ => "network columns (as, country, ...) come from --prefixes FILE; values of this host (pop, ...) from \
                  [host] in the --config file"
                .to_owned(),
        };
        Problem::refused("bad-policy", &place, &error, expected, &hint)
    })
}

fn asked(file: &Value) -> BTreeSet<String> {
    let rules = file.get("rules").and_then(Value::as_array).into_iter().flatten();
    let when = rules.filter_map(|rule| rule.get("when").and_then(Value::as_object));
    when.flat_map(|when| when.keys().cloned()).collect()
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
