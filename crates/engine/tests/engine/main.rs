//! Tests of the engine's binary, in one program that is compiled once.

mod common;
mod declarations;
mod interruptions;
mod kernel;
mod policies;
mod refusals;
mod running;
mod stage;
mod uml;
mod vm;
