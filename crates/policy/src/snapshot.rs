//! Learned state that survives restarts. Writing files is not this crate's.

use crate::arm::Arms;
use crate::guard::Guard;
use serde::{Deserialize, Serialize};

/// Version of the snapshot: another one is refused, not guessed at.
pub const FORMAT: u32 = 1;

/// All that was learned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version.
    pub format: u32,
    guard: Guard,
}

/// A snapshot that cannot be gone on from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// It is damaged, or something else.
    #[error("the learned state cannot be read: {0}; move the file away to begin afresh")]
    Form(String),
    /// It is of another version.
    #[error("the learned state has format {0}, expected {FORMAT}; move the file away to begin afresh")]
    Format(u64),
    /// It is about other arms.
    #[error("the learned state is about the arms {then}, and now they are {now}; move the file away to begin afresh")]
    OtherArms {
        /// Those of the snapshot.
        then: String,
        /// Those wanted.
        now: String,
    },
}

impl Snapshot {
    /// What a guard and its policy know now.
    pub fn of(guard: &Guard) -> Snapshot {
        Snapshot { format: FORMAT, guard: guard.clone() }
    }

    /// As text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    /// Goes on from a text.
    ///
    /// # Errors
    /// If it is none, of another version, or about other arms.
    pub fn restore(text: &str, arms: &Arms) -> Result<Guard, RestoreError> {
        let form = |error: serde_json::Error| RestoreError::Form(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(form)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        match format {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(RestoreError::Format(format)),
            None => return Err(RestoreError::Form("it names no format".to_owned())),
        }
        let snapshot: Snapshot = serde_json::from_value(value).map_err(form)?;
        if snapshot.guard.arms() != arms {
            let names = |arms: &Arms| arms.iter().map(|(_, arm)| arm.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(RestoreError::OtherArms { then: names(snapshot.guard.arms()), now: names(arms) });
        }
        Ok(snapshot.guard)
    }
}
