//! Entry points to what reads names of files and keys, for tests with damaged input.

use super::{Key, Name};
use std::path::Path;

/// A file in the folder of records.
pub fn name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(name) = Name::parse(&text) {
        assert_eq!(name.text(), text);
    }
}

/// A file of a key.
pub fn key(path: &Path) {
    let _ = Key::open(path);
}
