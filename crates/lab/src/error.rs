//! Errors with hints.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An error with a code, a message and a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Error {
    /// Short name, such as `no-namespaces`.
    pub code: String,
    /// The failed operation and the actual state, as a sentence without a full stop.
    pub message: String,
    /// What the user should type or change; empty if the message includes it.
    pub hint: String,
}

impl Error {
    /// Creates an error.
    pub fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { code: code.to_owned(), message: message.into(), hint: hint.into() }
    }

    /// Returns message and hint as one text.
    pub fn sentence(&self) -> String {
        if self.hint.is_empty() { self.message.clone() } else { format!("{}; {}", self.message, self.hint) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(out, "\n  hint: {}", self.hint) }
    }
}
