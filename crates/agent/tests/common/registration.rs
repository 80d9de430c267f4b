//! A lock on the registration of algorithms.

use std::fs::File;

/// Locks registrations: algorithm names are global to the machine, and tests run in parallel.
pub fn lock_registrations() -> File {
    let lock = File::create(std::env::temp_dir().join("thalweg-agent-tests.lock")).expect("a file for the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    lock
}
