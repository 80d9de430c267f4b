//! Tests of TCP's endpoints through the crate's interface, in one program, which is compiled once.

mod chaos;
mod common;
mod ecn;
mod kernel;
mod rate;
mod receiver;
mod recovery;
mod sender;
mod transfer;
