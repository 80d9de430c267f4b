//! Determines the algorithms to choose from.

use crate::cc::{BUILT_IN, settings};
use std::io;
use thalweg_policy::MAX_ARMS;
use thalweg_store::Problem;

/// Algorithms for paths whose routers mark packets (ECN), as in data centres.
pub const NEED_ECN: [&str; 2] = ["dctcp", "prague"];

/// Algorithms that the kernel offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// All registered algorithms.
    pub available: Vec<String>,
    /// Algorithms that unprivileged users may choose.
    pub allowed: Vec<String>,
    /// Default algorithm of this network namespace.
    pub default: String,
}

impl Offer {
    /// Reads the algorithms of the kernel.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub fn read() -> Result<Offer, Problem> {
        let read = || -> io::Result<Offer> {
            Ok(Offer {
                available: settings::available()?,
                allowed: settings::allowed()?,
                default: settings::default()?,
            })
        };
        read().map_err(settings::unreadable)
    }

    /// Returns the available algorithms that are not among the arms, each with the reason.
    pub fn left_out(&self, arms: &[String], is_named: bool) -> Vec<String> {
        let others = self.available.iter().filter(|name| !arms.contains(name));
        let reason = |name: &str| {
            if is_named {
                "not listed in `arms`"
            } else if NEED_ECN.contains(&name) {
                "it needs ECN along the whole path, and no override has data_center = true"
            } else {
                "only root may choose it (net.ipv4.tcp_allowed_congestion_control)"
            }
        };
        others.map(|name| format!("{name}: {}", reason(name))).collect()
    }

    /// Returns the names of the arms: those of `wanted`, or else the default and then the other allowed ones. Of these
    /// others, algorithms that need ECN are included only with `has_ecn`.
    ///
    /// # Errors
    /// If an arm is not available or named twice, the default is not among the arms, or their number is out of range.
    pub fn arms(&self, wanted: Option<&[String]>, has_ecn: bool) -> Result<Vec<String>, Problem> {
        let names: Vec<String> = match wanted {
            Some(wanted) => wanted.to_vec(),
            None => {
                let is_arm =
                    |name: &&String| self.allowed.contains(name) && (has_ecn || !NEED_ECN.contains(&name.as_str()));
                let others = self.available.iter().filter(|name| **name != self.default).filter(is_arm);
                std::iter::once(&self.default).chain(others).cloned().collect()
            }
        };
        let place = "--arms";
        if let Some(unknown) = names.iter().find(|name| !self.available.contains(name)) {
            let how = match unknown.as_str() {
                name if BUILT_IN.iter().any(|algorithm| algorithm.name == name) => {
                    format!("sudo thalweg-agent cc load {name} --keep")
                }
                name => format!("if this kernel has it: sudo modprobe tcp_{name}"),
            };
            let expected = format!("one of the available algorithms: {}", self.available.join(", "));
            return Err(Problem::refused("unknown-arm", place, format!("`{unknown}`"), &expected, &how));
        }
        let (found, default) = (names.join(", "), &self.default);
        let expected = format!("two to {MAX_ARMS} different algorithms, including the system's default {default}");
        let is_twice = names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
        if names.len() == 1 && names[0] == self.default {
            let hint = "sudo modprobe tcp_bbr, or name algorithms that only root may choose with --arms (see \
                        `thalweg-agent cc list`)";
            return Err(Problem::missing("one-arm", place, format!("only {found}"), &expected, hint));
        }
        if names.len() > MAX_ARMS || !names.contains(default) || is_twice {
            let other = names.iter().chain(&self.available).find(|name| *name != default).map_or("bbr", String::as_str);
            let hint = format!("--arms {default},{other}; held-out connections keep the default");
            return Err(Problem::refused("bad-arms", place, found, &expected, &hint));
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect();
        Offer {
            available: names("reno bbr cubic dctcp htcp"),
            allowed: names("reno bbr dctcp cubic"),
            default: "cubic".to_owned(),
        }
    }

    fn refusal(names: &[&str]) -> Problem {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        offer().arms(Some(&names), false).unwrap_err()
    }

    #[test]
    fn arms_are_the_allowed_algorithms_and_dctcp_is_limited_to_data_centres() {
        assert_eq!(offer().arms(None, false).unwrap(), ["cubic", "reno", "bbr"]);
        assert_eq!(offer().arms(None, true).unwrap(), ["cubic", "reno", "bbr", "dctcp"]);
    }

    #[test]
    fn every_excluded_algorithm_has_a_reason() {
        let arms = offer().arms(None, false).unwrap();
        let left_out = offer().left_out(&arms, false);
        assert!(
            left_out[0].starts_with("dctcp: it needs ECN") && left_out[1].starts_with("htcp: only root"),
            "{left_out:?}"
        );
        let named = offer().left_out(&["cubic".to_owned(), "bbr".to_owned()], true);
        assert_eq!(named[0], "reno: not listed in `arms`");
        assert_eq!(named.len(), 3);
    }

    #[test]
    fn invalid_arms_are_rejected_and_valid_ones_listed() {
        let unknown = refusal(&["cubic", "vegas"]);
        assert_eq!((unknown.code, unknown.found.as_str()), ("unknown-arm", "`vegas`"));
        assert!(unknown.expected.contains("reno, bbr, cubic, dctcp, htcp"), "{unknown}");
        assert!(unknown.hint.contains("modprobe tcp_vegas"));
        assert!(refusal(&["cubic", "bbr_cpu"]).hint.contains("cc load bbr_cpu"));
        assert!(refusal(&["cubic", "bbr3"]).hint.contains("cc load bbr3"));
        assert_eq!(refusal(&["bbr", "reno"]).code, "bad-arms");
        assert_eq!(refusal(&["cubic", "bbr", "bbr"]).code, "bad-arms");
        let of_bbr =
            Offer { default: "bbr".to_owned(), ..offer() }.arms(Some(&["cubic".to_owned()]), false).unwrap_err();
        assert!(of_bbr.hint.starts_with("--arms bbr,cubic;"), "{of_bbr}");
        assert_eq!(refusal(&["cubic"]).code, "one-arm");
    }
}
