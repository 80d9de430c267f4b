//! Congestion controllers written in eBPF: loading them into the kernel, finding those that are there, taking them
//! back.
//!
//! The kernel is the only memory: what is registered, by whom and with which counters is read from it each time. There
//! is no state file that could be wrong.

mod built_in;
mod counters;
pub(crate) mod holders;
mod kernel;
mod list;
mod load;
mod object;
mod registered;
pub mod rehearsal;
pub mod settable;
pub mod settings;
mod stale;
mod status;
mod unload;

pub use built_in::{BUILT_IN, BuiltIn};
pub use kernel::{check_rights, check_struct_ops, find_bbr};
pub use list::list;
pub use load::load;
pub use status::status;
pub use unload::unload;
