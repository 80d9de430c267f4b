//! Raises the limit of open files, which limits the number of concurrent connections of a host.

use crate::error::Error;
use thalweg_plan::plan::{Experiment, Repeat};
use thalweg_store::raise_open_files;

/// Upper bound of the number of descriptors that a host needs in addition to one per connection.
const OTHERS: u64 = 64;

/// Raises the limit of open files, and checks that it suffices for one connection per copy of the flows without random
/// arrivals.
///
/// # Errors
/// If the limit is too low.
pub(in crate::traffic) fn prepare(experiment: &Experiment, flows: impl Iterator<Item = usize>) -> Result<(), Error> {
    let limit = raise_open_files();
    let copies =
        flows.map(|flow| &experiment.flows[flow]).filter(|flow| !matches!(flow.repeat, Repeat::Poisson { .. }));
    let needed = copies.map(|flow| u64::from(flow.count)).sum::<u64>() + OTHERS;
    match limit {
        Some(limit) if needed > limit => Err(Error::new(
            "too-many-connections",
            format!("the flows have up to {needed} connections open at once, but the limit of open files is {limit}"),
            format!("raise the limit: `ulimit -n {needed}` (as root), or lower `count`"),
        )),
        _ => Ok(()),
    }
}

/// Returns the error for a refused descriptor.
pub(in crate::traffic) fn exhausted(error: rustix::io::Errno) -> Error {
    Error::new(
        "too-many-connections",
        format!("no further connection can be opened: {error}"),
        "raise the limit of open files (`ulimit -n 100000`, as root), or lower `rate` or `count`",
    )
}
