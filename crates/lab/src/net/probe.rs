//! What this machine's kernel has.

/// Congestion controls that the kernel has, in this network namespace.
pub fn algorithms() -> Vec<String> {
    unimplemented!()
}
