//! Congestion controllers written in eBPF: loads them into the kernel, lists and unregisters them.
//!
//! Registrations, their holders and counters are read from the kernel, not from a state file that could become stale.

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
