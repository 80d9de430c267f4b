//! Kernel settings.

use crate::error::Error;
use std::collections::BTreeMap;

/// Settings that are left out where the kernel does not have them.
pub const OPTIONAL: &[&str] = &[];

/// Makes kernel settings in this network namespace, and reads them back.
///
/// # Errors
/// One cannot be made.
pub fn apply(_settings: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    unimplemented!()
}
