//! The network of an experiment: namespaces, interfaces, queue disciplines.

pub mod probe;
pub mod sysctl;
