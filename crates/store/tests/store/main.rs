//! Tests of the files that the crate writes and reads, in one program, which is compiled once.

mod common;
mod directory;
mod id;
mod merge;
mod rows;
mod tables;
