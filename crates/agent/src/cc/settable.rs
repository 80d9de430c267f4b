//! Parameters of the built-in algorithms: `cc load NAME --set PARAM=VALUE`.

use std::collections::BTreeMap;
use thalweg_cc::{BuildError, Word};
use thalweg_store::Problem;

/// Settings by parameter name.
pub type Settings = BTreeMap<String, String>;

/// Parameters that an algorithm accepts.
#[derive(Debug)]
pub enum Settable {
    /// The parameter `rule`.
    Rule {
        /// The rules, in the order of their numbers.
        names: &'static [&'static str],
        /// The rule if none is set.
        default: &'static str,
    },
    /// The parameters of BBR.
    Bbr {
        /// The simulator's algorithm with the same parameters: `bbr` or `bbr_auto`.
        of: &'static str,
    },
}

const RULE: &str = "rule";

/// The rule that ignores CPU contention.
pub const NO_RULE: &str = "none";

/// A parameter of BBR with named values, in the order of their numbers.
const PROBE_CLOCK: &str = "probe_clock";
const PROBE_CLOCKS: [&str; 2] = ["round_trips", "time"];

impl Settable {
    /// Returns the name of the BPF program's data section with the parameters. The kernel limits it to 15 characters.
    pub fn section(&self) -> &'static str {
        match self {
            Settable::Rule { .. } => ".rodata.rule",
            Settable::Bbr { .. } => ".rodata.params",
        }
    }

    /// Returns the size of [`Settable::section`] in bytes.
    pub fn size(&self) -> usize {
        self.bytes(&Settings::new(), "").map_or(0, |bytes| bytes.len())
    }

    /// Encodes settings of the algorithm `name` as the value of [`Settable::section`].
    ///
    /// # Errors
    /// If a parameter is unknown, or its value is invalid.
    pub fn bytes(&self, settings: &Settings, name: &str) -> Result<Vec<u8>, Problem> {
        let words = match self {
            Settable::Rule { names, default } => vec![rule(names, default, settings, name)?],
            Settable::Bbr { of } => {
                let words = bbr_words(of, settings, name)?;
                // The last word is 1 if the parameters differ from the kernel's BBR, as bbr_auto's do even by default.
                let is_changed = words != default_words("bbr");
                words.into_iter().map(|word| word.value).chain([u32::from(is_changed)]).collect()
            }
        };
        Ok(words.into_iter().flat_map(u32::to_ne_bytes).collect())
    }

    /// Decodes [`Settable::section`]. Omits BBR parameters that have their defaults.
    pub fn read(&self, bytes: &[u8]) -> Settings {
        let values = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("chunks of four")));
        match self {
            Settable::Rule { names, .. } => {
                let rule = values.take(1).filter_map(|number| names.get(number as usize));
                rule.map(|rule| (RULE.to_owned(), (*rule).to_owned())).collect()
            }
            Settable::Bbr { of } => {
                let changed = values.zip(default_words(of)).filter(|(value, word)| *value != word.value);
                let text = |value: u32, word: &Word| (f64::from(value) / f64::from(word.scale)).to_string();
                let mut settings: Settings =
                    changed.map(|(value, word)| (word.param.to_owned(), text(value, &word))).collect();
                if settings.contains_key("probe_interval_ms") {
                    settings.remove("cruise_phases");
                    settings.insert(PROBE_CLOCK.to_owned(), PROBE_CLOCKS[1].to_owned());
                }
                settings
            }
        }
    }
}

/// Parses the command-line options `--set PARAM=VALUE` and `--rule NAME`, which equals `--set rule=NAME`.
///
/// # Errors
/// If a setting is malformed, or a parameter is set twice.
pub fn parse(set: &[String], rule: Option<&str>) -> Result<Settings, Problem> {
    let mut settings = Settings::new();
    let wrong = |found: &str, expected: &str| {
        let hint = "sudo thalweg-agent cc load bbr_tuned --set probe_gain=1.5 --set probe_clock=time";
        Problem::refused("bad-setting", "--set", found, expected, hint)
    };
    let rule = rule.map(|rule| (RULE, rule));
    for text in set {
        let pair = text.split_once('=').filter(|(param, value)| !param.is_empty() && !value.is_empty());
        let (param, value) = pair.ok_or_else(|| wrong(text, "PARAM=VALUE"))?;
        if rule.is_some_and(|(rule, _)| rule == param) || settings.insert(param.to_owned(), value.to_owned()).is_some()
        {
            return Err(wrong(&format!("{param} set twice"), "each parameter once"));
        }
    }
    settings.extend(rule.map(|(param, value)| (param.to_owned(), value.to_owned())));
    Ok(settings)
}

fn bad(param: &str, found: &str, expected: &str, name: &str) -> Problem {
    let hint = format!("docs/concepts/bbr-tuned.md and docs/reference/agent-cc.md list the parameters of {name}");
    Problem::refused("bad-setting", &format!("--set {param}"), found, expected, &hint)
}

fn rule(names: &[&str], default: &str, settings: &Settings, name: &str) -> Result<u32, Problem> {
    if let Some(param) = settings.keys().find(|param| *param != RULE) {
        return Err(bad(param, &format!("a parameter that {name} does not have"), RULE, name));
    }
    let chosen = settings.get(RULE).map_or(default, String::as_str);
    let number = (0..).zip(names).find(|(_, rule)| **rule == chosen).map(|(number, _)| number);
    number.ok_or_else(|| bad(RULE, chosen, &format!("one of {}", names.join(", ")), name))
}

fn bbr_words(of: &str, settings: &Settings, name: &str) -> Result<Vec<Word>, Problem> {
    let number = |(param, value): (&String, &String)| {
        let named = PROBE_CLOCKS.iter().position(|clock| param == PROBE_CLOCK && value == clock);
        let number = named.map(|number| number as f64).or_else(|| value.parse().ok());
        let expected = if param == PROBE_CLOCK { "round_trips or time" } else { "a number" };
        number.map(|number| (param.clone(), number)).ok_or_else(|| bad(param, value, expected, name))
    };
    let params = settings.iter().map(number).collect::<Result<BTreeMap<String, f64>, Problem>>()?;
    thalweg_cc::bbr_words(of, &params).map_err(|error| match &error {
        BuildError::UnknownParam { param, .. } => {
            bad(param, &format!("a parameter that {name} does not have"), &error.expected(), name)
        }
        BuildError::OutOfRange { param, .. } => bad(param.name, &error.found(), &error.expected(), name),
        BuildError::UnknownName(_) => unreachable!("{of} is in the catalog"),
    })
}

fn default_words(of: &str) -> Vec<Word> {
    thalweg_cc::bbr_words(of, &BTreeMap::new()).expect("defaults are in range")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNED: Settable = Settable::Bbr { of: "bbr" };
    const AUTO: Settable = Settable::Bbr { of: "bbr_auto" };
    const TWO_RULES: Settable = Settable::Rule { names: &["none", "paper"], default: "none" };

    fn settings(set: &[&str]) -> Settings {
        parse(&set.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), None).unwrap()
    }

    fn error(settable: &Settable, set: &[&str]) -> Problem {
        settable.bytes(&settings(set), "this").unwrap_err()
    }

    #[test]
    fn parameters_read_back_as_set() {
        let set = settings(&["probe_gain=1.5", "probe_clock=time", "probe_interval_ms=700", "loss_threshold=0.5"]);
        let bytes = TUNED.bytes(&set, "bbr_tuned").unwrap();
        assert_eq!(bytes.len(), TUNED.size());
        let read = TUNED.read(&bytes);
        // The default of `probe_drain_gain` is 2 minus the probing gain.
        let drain = [("probe_drain_gain".to_owned(), "0.5".to_owned())];
        assert_eq!(read, set.into_iter().chain(drain).collect());
        assert_eq!(TWO_RULES.read(&TWO_RULES.bytes(&settings(&["rule=paper"]), "x").unwrap())["rule"], "paper");
    }

    #[test]
    fn only_changed_parameters_change_the_program() {
        let is_unchanged = |settable: &Settable, set: &[&str]| {
            *settable.bytes(&settings(set), "this").unwrap().chunks(4).last().unwrap() == [0; 4]
        };
        assert!(is_unchanged(&TUNED, &[]) && is_unchanged(&TUNED, &["probe_gain=1.25", "startup_gain=2.885"]));
        assert!(!is_unchanged(&TUNED, &["probe_gain=1.26"]));
        assert!(!is_unchanged(&AUTO, &[]), "its rule is in force with its defaults");
    }

    #[test]
    fn bbr_auto_has_parameters_that_bbr_tuned_lacks() {
        let set = settings(&["auto_max_gain=1.5", "cruise_gain=0.9375"]);
        assert_eq!(AUTO.read(&AUTO.bytes(&set, "bbr_auto").unwrap()), set);
        assert_eq!(AUTO.read(&AUTO.bytes(&Settings::new(), "bbr_auto").unwrap()), Settings::new());
        let unknown = error(&TUNED, &["auto_max_gain=1.5"]);
        assert!(unknown.found.contains("a parameter that this does not have"), "{unknown}");
    }

    #[test]
    fn invalid_parameters_are_rejected_with_the_existing_ones() {
        let unknown = error(&TUNED, &["gain=1"]);
        assert!(unknown.found.contains("this does not have") && unknown.expected.contains("probe_gain"), "{unknown}");
        let range = error(&TUNED, &["probe_gain=5"]);
        assert_eq!((range.found.as_str(), range.expected.as_str()), ("5", "a number from 1 to 1.9"));
        assert_eq!(error(&TUNED, &["probe_clock=sundial"]).expected, "round_trips or time");
        assert_eq!(error(&TWO_RULES, &["rule=magic"]).expected, "one of none, paper");
        assert_eq!(error(&TWO_RULES, &["probe_gain=1"]).expected, "rule");
        let twice = parse(&["rule=paper".to_owned()], Some("paper")).unwrap_err();
        assert_eq!(twice.found, "rule set twice");
        assert_eq!(parse(&["rule".to_owned()], None).unwrap_err().expected, "PARAM=VALUE");
    }
}
