//! `tune`: the algorithm of each new connection is chosen by its destination.
//!
//! ```text
//!  kernel: program ─► events ─► outcomes ─► whoever decides ─► chances ─► maps ─► program
//! ```

#![allow(dead_code, reason = "the command that uses it comes next")]

pub mod kernel;
mod maps;
pub mod outcome;
pub mod tuner;
