//! Formats times, shares and counts of decisions for `tune status` and `tune explain`.

use crate::flow::reason::Reason;
use crate::show::words::count;
use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

/// Formats counts by reason, such as `7 chosen, 1 held out, 5 left alone (route 2, private 3)`.
pub fn parts<'a>(reasons: impl Iterator<Item = (&'a str, u64)>) -> String {
    let mut sums: BTreeMap<Reason, u64> = BTreeMap::new();
    for (name, connections) in reasons {
        let reason = Reason::ALL.into_iter().find(|reason| reason.name() == name);
        *sums.entry(reason.unwrap_or_default()).or_default() += connections;
    }
    let of = |reason: Reason| sums.get(&reason).copied().unwrap_or(0);
    let mut parts =
        vec![format!("{} chosen", count(of(Reason::Treated))), format!("{} held out", count(of(Reason::HeldOut)))];
    if of(Reason::Override) > 0 {
        parts.push(format!("{} set by an override", count(of(Reason::Override))));
    }
    let left_alone: Vec<(&Reason, &u64)> = sums.iter().filter(|(reason, _)| reason.is_left_alone()).collect();
    if !left_alone.is_empty() {
        let sum = left_alone.iter().map(|(_, connections)| **connections).sum();
        let counts: Vec<String> = left_alone
            .iter()
            .map(|(reason, connections)| format!("{} {}", reason.name(), count(**connections)))
            .collect();
        parts.push(format!("{} left alone ({})", count(sum), counts.join(", ")));
    }
    if of(Reason::Undecided) > 0 {
        parts.push(format!("{} while no agent was running", count(of(Reason::Undecided))));
    }
    parts.join(", ")
}

/// Formats a UNIX time in UTC.
pub fn moment(us: u64) -> String {
    let moment = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(us)).to_string();
    moment.replace('T', " ").replace('Z', " UTC")
}

/// Formats a share from 0 to 1 as a percentage.
pub fn percent(share: f64) -> String {
    let digits = usize::from(share > 0.0 && share < 0.1 || share > 0.9 && share < 1.0);
    format!("{:.digits$} %", 100.0 * share)
}
