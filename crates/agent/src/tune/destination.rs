//! Destinations in answers to clients: their fields, and their table.

use super::phrases::{moment, percent};
use crate::show::words::{count, short, time};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use thalweg_policy::{Difference, Interval};

/// State of a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Destination {
    /// The network namespace.
    pub netns: u32,
    /// Name of the namespace; empty if unknown.
    pub netns_name: Option<String>,
    /// The destination.
    pub prefix: String,
    /// Decision about a new connection, unless an application or a route has chosen: the name of a `Reason`. `treated`
    /// includes connections that are held out.
    pub decision: String,
    /// Time of the latest outcome of a connection to the destination; empty if there was none.
    pub seen_us: Option<u64>,
    /// Share held out; empty if no algorithm is drawn.
    pub holdout: Option<f64>,
    /// End of the withdrawal to the default; empty if none is in effect.
    pub withdrawn_until_us: Option<u64>,
    /// The operator's override; empty without one.
    pub said: Option<String>,
    /// Gain of treated connections over held-out ones; empty without data for a comparison.
    pub difference: Option<Difference>,
    /// Explanation of the choice.
    pub sentence: String,
    /// Closed connections, by decision and algorithm.
    pub closed: Vec<Decided>,
    /// State of each algorithm.
    pub arms: Vec<Arm>,
}

/// Number of connections with the same decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decided {
    /// Name of the decision.
    pub reason: String,
    /// The algorithm at the close; for opened connections, the arm that was chosen, empty if none was.
    pub cc: Option<String>,
    /// Number of connections.
    pub connections: u64,
}

/// State of an algorithm for a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Name of the algorithm.
    pub cc: String,
    /// Probability for a connection that the peer opens, unless it is held out; empty if connections are left alone.
    pub weight_in: Option<f64>,
    /// Probability for a connection that this host opens, unless it is held out; empty if connections are left alone.
    pub weight_out: Option<f64>,
    /// Number of outcomes.
    pub connections: u64,
    /// Number of connections as weighted by the policy, which may discount old ones.
    pub effective: f64,
    /// Number of connections that got the algorithm as the best or the preferred arm.
    pub greedy: u64,
    /// Gain over the default, as a difference of logarithms.
    pub gain: Option<Interval>,
    /// Cost, if the policy uses costs.
    pub cost: Option<f64>,
    /// Smallest round-trip time.
    pub rtt_min_us: Option<u64>,
    /// Largest delivery rate.
    pub delivery_rate_max_bps: Option<u64>,
    /// Data segments sent.
    pub segments: u64,
    /// Retransmissions among these segments.
    pub retransmits: u64,
}

const HEADING: [&str; 10] =
    ["DESTINATION", "CC", "IN", "OUT", "CLOSED", "GREEDY", "WORTH", "MINRTT", "MAXRATE", "RETRANS%"];

/// Returns a table with a line per destination and algorithm, and notes. Unknown values are `-`.
pub fn table(destinations: &[Destination], with_netns: bool) -> String {
    let mut lines: Vec<[String; HEADING.len()]> = vec![HEADING.map(str::to_owned)];
    let mut notes: Vec<(usize, String)> = Vec::new();
    for destination in destinations {
        let mut name = if with_netns {
            format!("{}@{}", destination.prefix, destination.netns)
        } else {
            destination.prefix.clone()
        };
        for arm in &destination.arms {
            let unknown = || "-".to_owned();
            let ratio = (arm.segments > 0).then(|| 100.0 * arm.retransmits as f64 / arm.segments as f64);
            lines.push([
                std::mem::take(&mut name),
                arm.cc.clone(),
                arm.weight_in.map_or_else(unknown, percent),
                arm.weight_out.map_or_else(unknown, percent),
                count(arm.connections),
                count(arm.greedy),
                worth(arm).unwrap_or_else(unknown),
                arm.rtt_min_us.map_or_else(unknown, time),
                arm.delivery_rate_max_bps.map_or_else(unknown, |bps| short(bps as f64)),
                ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
            ]);
        }
        notes.push((lines.len(), note(destination)));
    }
    let widths: Vec<usize> =
        (0..HEADING.len()).map(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
        if let Some((_, note)) = notes.iter().find(|(after, note)| *after == number + 1 && !note.is_empty()) {
            writeln!(text, "  {note}").expect("a string grows");
        }
    }
    text
}

fn worth(arm: &Arm) -> Option<String> {
    if let Some(gain) = &arm.gain {
        let [mean, low, high] = [gain.mean, gain.low, gain.high].map(f64::exp);
        return Some(format!("x{mean:.2} ({low:.2}-{high:.2})"));
    }
    arm.cost.map(|cost| format!("cost {cost:.0}"))
}

fn note(destination: &Destination) -> String {
    let mut parts = Vec::new();
    match destination.decision.as_str() {
        "loopback" | "private" | "link_local" => {
            parts.push(format!("left alone, because --private is not set ({})", destination.decision));
        }
        "no_chances" => {
            parts.push("left alone, because the namespace's default is not among the algorithms".to_owned());
        }
        _ => {}
    }
    if let Some(override_text) = &destination.said {
        parts.push(format!("override: {override_text}"));
    }
    if let Some(until) = destination.withdrawn_until_us {
        parts.push(format!("withdrawn: the default is used until {}", moment(until)));
    }
    if let Some(difference) = &destination.difference {
        parts.push(format!(
            "connections with a chosen algorithm were {difference}, compared with held-out ones{}",
            destination.holdout.map(|share| format!(" ({})", percent(share))).unwrap_or_default()
        ));
    }
    parts.join("; ")
}
