//! Changes with their reasons, in memory and as lines for the log.

use crate::log::Level;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use thalweg_policy::{Change, PolicyEvent};
use thalweg_units::{Span, Time};

const KEPT: usize = 1_000;

/// Interval, and the maximum number of lines in it about destinations that prefer another arm.
const WINDOW: Span = Span::from_secs(60);
const MAX_LINES: u32 = 100;

/// A change in a network namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// The network namespace; `None` if the change applies to all.
    pub netns: Option<u32>,
    /// Name of the namespace; `None` if it is the agent's own or unknown.
    #[serde(default)]
    pub netns_name: Option<String>,
    /// The change.
    #[serde(flatten)]
    pub event: PolicyEvent,
}

impl Logged {
    /// Returns the network namespace as a prefix of the log line.
    pub fn place(&self) -> String {
        match (self.netns, &self.netns_name) {
            (Some(netns), Some(name)) => format!("netns {netns} ({name}): "),
            (Some(netns), None) => format!("netns {netns}: "),
            (None, _) => String::new(),
        }
    }
}

/// The latest changes, counts of all changes, and lines to be written.
#[derive(Debug, Default)]
pub struct Log {
    kept: VecDeque<Logged>,
    counts: BTreeMap<&'static str, u64>,
    lines: Vec<(Level, String)>,
    window: Time,
    written: u32,
    left_out: u64,
}

impl Log {
    /// Adds a change. `is_own`: it concerns the agent's own network namespace, or the host.
    pub fn add(&mut self, netns: Option<u32>, name: Option<String>, is_own: bool, event: PolicyEvent) {
        *self.counts.entry(kind(&event.change)).or_default() += 1;
        let logged = Logged { netns, netns_name: name.filter(|_| !is_own), event };
        self.write(&logged, is_own);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(logged);
    }

    fn write(&mut self, logged: &Logged, is_own: bool) {
        let event = &logged.event;
        if event.at.since(self.window) >= WINDOW {
            if self.left_out > 0 {
                let line = format!("{} more destinations prefer another algorithm", self.left_out);
                self.lines.push((Level::Info, line));
            }
            (self.window, self.written, self.left_out) = (event.at, 0, 0);
        }
        if matches!(event.change, Change::Preferred { .. }) {
            if self.written >= MAX_LINES {
                self.left_out += 1;
                return;
            }
            self.written += 1;
        }
        let place = if is_own { String::new() } else { logged.place() };
        let line = (level(&logged.event.change), format!("{place}{}", logged.event));
        self.lines.push(line);
    }

    /// Returns the last `most` changes, newest first.
    pub fn last(&self, most: usize) -> Vec<Logged> {
        self.kept.iter().rev().take(most).cloned().collect()
    }

    /// Returns the number of changes of each kind, including kinds that have not occurred.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::from(KINDS.map(|kind| (kind, 0)));
        counts.extend(&self.counts);
        counts
    }

    /// Returns the lines that are not written yet.
    pub fn take_lines(&mut self) -> Vec<(Level, String)> {
        std::mem::take(&mut self.lines)
    }
}

fn level(change: &Change) -> Level {
    match change {
        Change::Withdrawn { .. } | Change::LeftOut { .. } | Change::CpuLimited => Level::Warning,
        _ => Level::Info,
    }
}

const KINDS: [&str; 9] = [
    "preferred",
    "path_changed",
    "withdrawn",
    "resumed",
    "holdout_shrunk",
    "holdout_restored",
    "cpu_limited",
    "cpu_free",
    "left_out",
];

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Preferred { .. } => "preferred",
        Change::PathChanged => "path_changed",
        Change::Withdrawn { .. } => "withdrawn",
        Change::Resumed => "resumed",
        Change::HoldoutShrunk => "holdout_shrunk",
        Change::HoldoutRestored => "holdout_restored",
        Change::CpuLimited => "cpu_limited",
        Change::CpuFree => "cpu_free",
        Change::LeftOut { .. } => "left_out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(second: u64, change: Change) -> PolicyEvent {
        let prefix = Some("192.0.2.0/24".parse().unwrap());
        PolicyEvent { at: Time(second * 1_000_000_000), prefix, change, reason: "why not".to_owned() }
    }

    fn preferred() -> Change {
        Change::Preferred { from: None, to: "bbr".to_owned() }
    }

    #[test]
    fn every_change_is_logged_with_its_reason() {
        let mut log = Log::default();
        log.add(Some(7), None, true, event(1, preferred()));
        log.add(Some(8), None, false, event(1, Change::PathChanged));
        let expected = ["192.0.2.0/24: prefers bbr: why not", "netns 8: 192.0.2.0/24: starts over: why not"];
        assert_eq!(log.take_lines(), expected.map(|line| (Level::Info, line.to_owned())));
        assert!(log.take_lines().is_empty());
        assert_eq!(log.last(1)[0].netns, Some(8));
    }

    #[test]
    fn preference_changes_are_rate_limited_in_the_log_and_withdrawals_are_not() {
        let mut log = Log::default();
        for _ in 0..5_000 {
            log.add(Some(7), None, true, event(3, preferred()));
        }
        log.add(Some(7), None, true, event(3, Change::Withdrawn { until: Time(0) }));
        let lines = log.take_lines();
        assert_eq!((lines.len(), lines[100].0), (101, Level::Warning));
        log.add(Some(7), None, true, event(64, preferred()));
        assert_eq!(log.take_lines()[0].1, "4900 more destinations prefer another algorithm");
        assert_eq!(log.last(usize::MAX).len(), 1_000);
        let (some, none): (Vec<_>, Vec<_>) = log.counts().into_iter().partition(|(_, count)| *count > 0);
        assert_eq!(some, [("preferred", 5_001), ("withdrawn", 1)]);
        assert_eq!(none.len(), KINDS.len() - 2, "kinds that have not occurred count 0: {none:?}");
    }
}
