//! Entry points of the parsers of file names and keys, for fuzz tests.

use super::{Key, Name};
use std::path::Path;

/// Parses a file name of the records folder.
pub fn name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(name) = Name::parse(&text) {
        assert_eq!(name.text(), text);
    }
}

/// Reads a key file.
pub fn key(path: &Path) {
    let _ = Key::open(path);
}
