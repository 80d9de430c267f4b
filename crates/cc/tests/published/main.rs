//! Tests that the controllers match their publications, on a path that can be calculated by hand.

mod bbr;
mod bbr3;
mod bic;
mod catalog;
mod cubic;
mod ecn;
mod htcp;
mod illinois;
mod path;
mod pipe;
mod prague;
mod reno;
mod vegas;
