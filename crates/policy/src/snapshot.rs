//! Snapshots of the learned state, which survive restarts.

use crate::guard::Guard;
use serde::{Deserialize, Serialize};

/// Version of the snapshot format; other versions are rejected.
pub const FORMAT: u32 = 1;

/// The learned state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of the format.
    pub format: u32,
    guard: Guard,
}

/// A snapshot that cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The text is damaged, or not a snapshot.
    #[error("the learned state cannot be read: {0}; move the file away to start over")]
    Form(String),
    /// The version is unsupported.
    #[error("the learned state has format {0}, expected {FORMAT}; move the file away to start over")]
    Format(u64),
}

/// Fields that do not depend on the version.
#[derive(Deserialize)]
struct Header {
    format: Option<u64>,
}

impl Snapshot {
    /// Creates a snapshot of the learned state of a guard and its policy.
    pub fn of(guard: &Guard) -> Snapshot {
        Snapshot { format: FORMAT, guard: guard.clone() }
    }

    /// Returns the snapshot as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    /// Parses a snapshot. The returned guard is the argument of [`Guard::restore_from`].
    ///
    /// # Errors
    /// If the text is not a snapshot, or has another version.
    pub fn restore(text: &str) -> Result<Guard, RestoreError> {
        let form = |error: serde_json::Error| RestoreError::Form(error.to_string());
        let header: Header = serde_json::from_str(text).map_err(form)?;
        match header.format {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(RestoreError::Format(format)),
            None => return Err(RestoreError::Form("it has no format".to_owned())),
        }
        let snapshot: Snapshot = serde_json::from_str(text).map_err(form)?;
        Ok(snapshot.guard)
    }
}
