//! Changes of a policy and their reasons, for the log.

use crate::prefix::Prefix;
use serde::{Deserialize, Serialize};
use std::fmt;
use thalweg_units::Time;

/// A change, with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyEvent {
    /// Time since the UNIX epoch.
    pub at: Time,
    /// The affected prefix; `None` if the change is not limited to a prefix.
    pub prefix: Option<Prefix>,
    /// The change.
    pub change: Change,
    /// The reason, in a sentence without a full stop.
    pub reason: String,
}

impl fmt::Display for PolicyEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix {
            Some(prefix) => write!(out, "{prefix}: {}: {}", self.change, self.reason),
            None => write!(out, "{}: {}", self.change, self.reason),
        }
    }
}

/// The kinds of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Change {
    /// Most new connections now use `to`.
    Preferred {
        /// The previous algorithm; `None` if none was preferred.
        from: Option<String>,
        /// The new algorithm.
        to: String,
    },
    /// A change of the path was detected, so its learned state was dropped.
    PathChanged,
    /// New connections use the system's default, because the other algorithms were worse.
    Withdrawn {
        /// End of the withdrawal.
        until: Time,
    },
    /// The policy resumes choosing after a withdrawal.
    Resumed,
    /// Fewer connections are held out, because the others are significantly better.
    HoldoutShrunk,
    /// The initial share of connections is held out again.
    HoldoutRestored,
    /// An algorithm is no longer chosen.
    LeftOut {
        /// Name of the algorithm.
        arm: String,
    },
    /// The host became short of CPU.
    CpuLimited,
    /// The host is no longer short of CPU.
    CpuFree,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Preferred { from: Some(from), to } => write!(out, "prefers {to} to {from}"),
            Change::Preferred { from: None, to } => write!(out, "prefers {to}"),
            Change::PathChanged => out.write_str("starts over"),
            Change::Withdrawn { .. } => out.write_str("restores the default"),
            Change::Resumed => out.write_str("resumes choosing"),
            Change::HoldoutShrunk => out.write_str("holds out fewer connections"),
            Change::HoldoutRestored => out.write_str("holds out the initial share of connections again"),
            Change::LeftOut { arm } => write!(out, "excludes {arm}"),
            Change::CpuLimited => out.write_str("excludes algorithms that need a whole CPU"),
            Change::CpuFree => out.write_str("considers all algorithms again"),
        }
    }
}
