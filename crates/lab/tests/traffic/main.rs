//! Hosts that send and receive, as processes in namespaces of their own, over a pair of interfaces.

mod faults;
mod plans;
mod rig;
mod simulated;
mod transfers;
