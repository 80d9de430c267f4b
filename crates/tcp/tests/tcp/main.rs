//! Tests of the TCP endpoints through the crate's public interface, in a single program to reduce compile time.

mod chaos;
mod common;
mod ecn;
mod kernel;
mod rate;
mod receiver;
mod recovery;
mod sender;
mod transfer;
