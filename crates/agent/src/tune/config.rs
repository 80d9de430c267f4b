//! Settings of `tune` in a TOML file. docs/reference/agent-tune.md lists the keys.

use super::kernel::Override;
use crate::files;
use crate::record::Detail;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thalweg_policy::{AbUnit, Arms, BpftuneSettings, GreedySettings, Prefix, UcbSettings};
use thalweg_store::Problem;
use thalweg_units::Bytes;

/// The content of a configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Name of a policy, or a policy file.
    pub policy: Option<String>,
    /// The algorithms to choose from.
    pub arms: Option<Vec<String>>,
    /// Share of connections that are held out.
    pub holdout: Option<f64>,
    /// Whether decisions are made but not set.
    pub dry_run: bool,
    /// Whether algorithms are also chosen for loopback, private and link-local addresses.
    pub private: bool,
    /// Grace time after the death of the daemon.
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,
    /// Path of the learned state.
    pub state: Option<PathBuf>,
    /// Level of detail of records.
    pub detail: Option<Detail>,
    /// Table of networks.
    pub prefixes: Option<PathBuf>,
    /// Maximum number of destinations of a network namespace.
    pub destinations: Option<usize>,
    /// The objective.
    pub objective: ObjectiveKeys,
    /// Limits on the policy.
    pub guard: GuardKeys,
    /// Prefix lengths of destinations.
    pub tree: TreeKeys,
    /// Properties of this host that rules may use.
    pub host: BTreeMap<String, String>,
    /// Overrides by the operator for prefixes.
    #[serde(rename = "override")]
    pub overrides: Vec<OverrideKeys>,
    /// Settings of the policy `bayes`.
    pub bayes: BayesKeys,
    /// Settings of the policy `ucb`.
    pub ucb: UcbSettings,
    /// Settings of the policy `epsilon-greedy`.
    #[serde(rename = "epsilon-greedy")]
    pub greedy: GreedySettings,
    /// Settings of the policy `bpftune`.
    pub bpftune: BpftuneSettings,
    /// Settings of the policy `ab`.
    pub ab: AbKeys,
    /// Settings of the policy `static`: relative weights of the arms.
    #[serde(rename = "static")]
    pub weights: BTreeMap<String, f64>,
}

/// `[objective]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectiveKeys {
    /// Price of the retransmit ratio.
    pub retransmit_price: Option<f64>,
    /// Minimum size of connections that have a reward.
    #[serde(deserialize_with = "size")]
    pub least: Option<Bytes>,
    /// Minimum size of medium connections.
    #[serde(deserialize_with = "size")]
    pub medium_from: Option<Bytes>,
    /// Minimum size of long connections, which are judged by throughput.
    #[serde(deserialize_with = "size")]
    pub long_from: Option<Bytes>,
}

/// `[guard]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardKeys {
    /// Share of connections that are held out where treated ones are significantly better.
    pub least_holdout: Option<f64>,
    /// Upper bound of the probability of any false withdrawal in a network namespace.
    pub alpha: Option<f64>,
    /// Time for which a withdrawn destination stays on the default.
    #[serde(deserialize_with = "time")]
    pub withdraw_for: Option<Duration>,
}

/// `[tree]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TreeKeys {
    /// Prefix length of IPv4 destinations.
    pub v4: Option<u8>,
    /// Prefix length of IPv6 destinations.
    pub v6: Option<u8>,
}

/// `[bayes]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BayesKeys {
    /// Standard deviation of gains before any data.
    pub gain_sd: Option<f64>,
    /// Memory in number of connections.
    pub memory: Option<f64>,
    /// Time that halves the weight of the data.
    #[serde(deserialize_with = "time")]
    pub half_life: Option<Duration>,
    /// Share of connections that is divided equally among all arms.
    pub floor: Option<f64>,
}

/// `[ab]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AbKeys {
    /// The arm that is compared with the default; optional with two arms.
    pub treatment: Option<String>,
    /// Share of connections or of destinations that get the treatment.
    pub share: Option<f64>,
    /// Unit of randomization: `connection` or `prefix`.
    pub unit: Option<AbUnit>,
    /// Seed of the assignment of prefixes.
    pub seed: u64,
    /// Time from which all connections get the treatment, in UTC: 2026-01-31T12:00:00Z.
    pub pilot_until: Option<String>,
}

/// `[[override]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideKeys {
    /// Prefix of the addresses.
    pub prefix: String,
    /// Whether connections are left alone.
    #[serde(default)]
    pub keep: bool,
    /// Algorithm of the connections.
    #[serde(default)]
    pub cc: Option<String>,
    /// Whether the prefix is within a data centre.
    #[serde(default)]
    pub data_center: bool,
}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// If the file cannot be read, is not valid TOML, or contains an unknown key or an invalid value.
    pub fn read(path: &Path) -> Result<Config, Problem> {
        let text = read(path)?;
        let is_policy = |error: &toml::de::Error| {
            let keys = ["format", "source", "default", "rules"];
            keys.iter().any(|key| error.message().contains(&format!("unknown field `{key}`")))
        };
        toml::from_str(&text).map_err(|error| {
            let hint = if is_policy(&error) {
                format!("this looks like a policy file; use --policy {}", path.display())
            } else {
                "docs/reference/agent-tune.md lists the keys".to_owned()
            };
            bad(path, &text, &error, "settings of `tune`", &hint)
        })
    }

    /// Parses the operator's overrides of prefixes.
    ///
    /// # Errors
    /// If an override has an invalid prefix, an unknown arm, or not exactly one action.
    pub fn overrides(&self, arms: &Arms, place: &str) -> Result<Vec<(Prefix, Override)>, Problem> {
        self.overrides.iter().map(|entry| entry.read(arms, place)).collect()
    }
}

impl OverrideKeys {
    fn read(&self, arms: &Arms, place: &str) -> Result<(Prefix, Override), Problem> {
        let place = format!("{place}: override of {}", self.prefix);
        let prefix: Prefix = self.prefix.parse().map_err(|error: thalweg_policy::PrefixError| {
            Problem::refused(
                "bad-prefix",
                &place,
                error.why,
                "an IPv4 prefix such as 192.0.2.0/24, or an IPv6 prefix such as 2001:db8::/48",
                "the length is at most 32 for IPv4 and 128 for IPv6, and the bits after it are zero",
            )
        })?;
        let what = match (self.keep, &self.cc, self.data_center) {
            (true, None, false) => Override::Keep,
            (false, None, true) => Override::DataCenter,
            (false, Some(name), false) => {
                Override::Arm(arms.find(name).ok_or_else(|| unknown_arm(&place, name, arms))?)
            }
            _ => {
                let expected = "exactly one of keep = true, cc = \"NAME\" or data_center = true";
                let found = "none or several of them";
                return Err(Problem::refused(
                    "bad-override",
                    &place,
                    found,
                    expected,
                    "set exactly one of them in each [[override]]",
                ));
            }
        };
        Ok((prefix, what))
    }
}

/// Returns the error for an arm that does not exist.
pub fn unknown_arm(place: &str, name: &str, arms: &Arms) -> Problem {
    let names: Vec<&str> = arms.iter().map(|(_, arm)| arm.name.as_str()).collect();
    let expected = format!("one of the arms: {}", names.join(", "));
    Problem::refused("unknown-arm", place, format!("`{name}`"), &expected, "add it to --arms, or remove it")
}

/// Reads a text file.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> Result<String, Problem> {
    files::read_text(path, files::SMALL).map_err(|error| {
        let place = path.display().to_string();
        Problem::refused("cannot-read", &place, error, "a readable TOML file", &format!("check ls -l {place}"))
    })
}

/// Returns the error for a malformed TOML file, with its line.
pub fn bad(path: &Path, text: &str, error: &toml::de::Error, expected: &str, hint: &str) -> Problem {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = match before {
        Some(before) => format!("{}, line {}", path.display(), 1 + before.matches('\n').count()),
        None => path.display().to_string(),
    };
    Problem::refused("bad-config", &place, error.message().trim_end(), expected, hint)
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    let time = humantime::parse_duration(&text);
    let wrong =
        |_| serde::de::Error::custom(format!("`{text}` is not a time; expected for example \"5min\" or \"24h\""));
    time.map(Some).map_err(wrong)
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn arms() -> Arms {
        Arms::named(&["cubic", "bbr"], "cubic").unwrap()
    }

    fn config(text: &str) -> Result<Config, Problem> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune.toml");
        fs::write(&path, text).unwrap();
        Config::read(&path)
    }

    #[test]
    fn times_and_sizes_have_units_and_all_keys_are_optional() {
        let config = config("grace = \"2min\"\n[objective]\nlong_from = \"1MB\"\n[ucb]\nwidth = 0.2\n").unwrap();
        assert_eq!(config.grace, Some(Duration::from_secs(120)));
        assert_eq!(config.objective.long_from, Some(Bytes(1_000_000)));
        assert_eq!((config.ucb.width, config.ucb.memory), (0.2, 200.0));
        assert!(config.policy.is_none() && config.overrides.is_empty());
    }

    #[test]
    fn an_unknown_key_is_rejected_with_its_line() {
        let error = config("policy = \"bayes\"\n[guard]\nalhpa = 0.05\n").unwrap_err();
        assert_eq!(error.code, "bad-config");
        assert!(error.place.ends_with("tune.toml, line 3"), "{error}");
        assert!(error.found.contains("`alhpa`") && error.found.contains("`alpha`"), "{error}");
        let error = config("[objective]\nlong_from = \"3 apples\"\n").unwrap_err();
        assert!(error.place.ends_with("line 2") && error.found.contains("3 apples"), "{error}");
    }

    #[test]
    fn a_policy_file_given_as_the_config_file_is_recognised() {
        let error = config("format = 1\ndefault = \"cubic\"\n").unwrap_err();
        assert!(error.hint.contains("--policy"), "{error}");
    }

    #[test]
    fn overrides_have_one_action_per_prefix_of_one_address_family() {
        let read = |text: &str| config(text).unwrap().overrides(&arms(), "f");
        let good = "[[override]]\nprefix = \"10.0.0.0/8\"\ndata_center = true\n[[override]]\nprefix = \"::/0\"\ncc = \
                    \"bbr\"\n";
        let overrides = read(good).unwrap();
        assert_eq!(overrides[0], ("10.0.0.0/8".parse().unwrap(), Override::DataCenter));
        assert_eq!(overrides[1].1, Override::Arm(thalweg_policy::ArmId(1)));
        for (text, code, part) in [
            ("prefix = \"192.0.2.0/48\"\nkeep = true", "bad-prefix", "its length exceeds the number of address bits"),
            ("prefix = \"2001:db8::1/48\"\nkeep = true", "bad-prefix", "bits beyond its length"),
            ("prefix = \"::/0\"\ncc = \"vegas\"", "unknown-arm", "`vegas`"),
            ("prefix = \"::/0\"\ncc = \"bbr\"\nkeep = true", "bad-override", "several"),
            ("prefix = \"::/0\"", "bad-override", "none"),
        ] {
            let error = read(&format!("[[override]]\n{text}\n")).unwrap_err();
            assert_eq!(error.code, code, "{error}");
            assert!(error.found.contains(part) && error.place.contains("override of"), "{error}");
        }
    }
}
