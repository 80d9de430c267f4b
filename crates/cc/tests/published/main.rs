//! The controllers do what their publications say, on a path that can be calculated by hand.

mod bbr;
mod catalog;
mod cubic;
mod ecn;
mod path;
mod pipe;
mod reno;
