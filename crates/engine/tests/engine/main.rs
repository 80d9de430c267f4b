//! The engine's tests as a user runs it, in one program, which is compiled once.

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
