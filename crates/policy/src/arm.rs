//! Arms: the algorithms that the policy may choose.

use serde::{Deserialize, Serialize};

/// Maximum number of arms, as in the BPF program.
pub const MAX_ARMS: usize = 8;

/// Algorithms that treat loss as congestion, so that their losses and queues describe the path.
const LOSS_BASED: [&str; 12] =
    ["bic", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "reno", "scalable", "veno", "westwood", "yeah"];

/// Algorithms that pace by a model of the path, and lose throughput on a host that is off-CPU for part of the time.
const NEED_WHOLE_CPU: [&str; 4] = ["bbr", "bbr1", "bbr2", "bbr3"];

/// Index of an arm in [`Arms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArmId(pub u8);

impl ArmId {
    /// Returns the index as `usize`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An algorithm that the policy may choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The value of `TCP_CONGESTION`.
    pub name: String,
    /// Whether the algorithm increases its window until a loss or an ECN mark, so that its losses and queues describe
    /// the path.
    pub is_loss_based: bool,
    /// Whether the algorithm must not be chosen while the host is short of CPU.
    pub needs_whole_cpu: bool,
}

impl Arm {
    /// Creates an arm. The properties of an unknown algorithm are false.
    pub fn named(name: &str) -> Arm {
        Arm {
            name: name.to_owned(),
            is_loss_based: LOSS_BASED.contains(&name),
            needs_whole_cpu: NEED_WHOLE_CPU.contains(&name),
        }
    }
}

/// The algorithms that the policy may choose, and the system's default among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arms {
    arms: Vec<Arm>,
    default: ArmId,
}

/// An invalid list of arms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArmsError {
    /// The system's default is not in the list.
    #[error("the arms {found} lack the system's default `{default}`; add it, because held-out connections use it")]
    NoDefault {
        /// The names in the list.
        found: String,
        /// The name of the default.
        default: String,
    },
    /// An arm is listed twice.
    #[error("the arm `{0}` is listed twice; list it once")]
    Twice(String),
    /// The list has too many arms.
    #[error("found {0} arms, expected at most {MAX_ARMS}; remove some")]
    TooMany(usize),
}

impl Arms {
    /// Creates the list of arms, in the given order.
    ///
    /// # Errors
    /// If `default` is not among them, one occurs twice, or there are more than [`MAX_ARMS`].
    pub fn new(arms: Vec<Arm>, default: &str) -> Result<Arms, ArmsError> {
        if arms.len() > MAX_ARMS {
            return Err(ArmsError::TooMany(arms.len()));
        }
        for (number, arm) in arms.iter().enumerate() {
            if arms[..number].iter().any(|other| other.name == arm.name) {
                return Err(ArmsError::Twice(arm.name.clone()));
            }
        }
        let Some(index) = arms.iter().position(|arm| arm.name == default) else {
            let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(ArmsError::NoDefault { found: names.join(", "), default: default.to_owned() });
        };
        Ok(Arms { arms, default: ArmId(index as u8) })
    }

    /// Creates the arms with these names.
    ///
    /// # Errors
    /// As for [`Arms::new`].
    pub fn named(names: &[&str], default: &str) -> Result<Arms, ArmsError> {
        Arms::new(names.iter().map(|name| Arm::named(name)).collect(), default)
    }

    /// Returns the system's default.
    pub const fn default(&self) -> ArmId {
        self.default
    }

    /// Returns the number of arms, at least one.
    #[allow(clippy::len_without_is_empty, reason = "the default is always there")]
    pub fn len(&self) -> usize {
        self.arms.len()
    }

    /// Returns all arms with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ArmId, &Arm)> {
        self.arms.iter().enumerate().map(|(number, arm)| (ArmId(number as u8), arm))
    }

    /// Returns the arm with an id.
    ///
    /// # Panics
    /// If the id is unknown.
    pub fn arm(&self, id: ArmId) -> &Arm {
        &self.arms[id.index()]
    }

    /// Returns the id of the arm with a name.
    pub fn find(&self, name: &str) -> Option<ArmId> {
        self.iter().find(|(_, arm)| arm.name == name).map(|(id, _)| id)
    }
}
