//! Congestion controllers written in eBPF: loading them into the kernel, finding those that are there, taking them back.
//!
//! The kernel is the only memory: what is registered, by whom and with which counters is read from it each time. There is no
//! state file that could be wrong.

mod built_in;
mod counters;
pub(crate) mod holders;
mod kernel;
mod list;
mod load;
mod object;
mod registered;
pub mod rehearsal;
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

/// The rules of `bbr_cpu`, in the order of `enum rule` in bpf/cc/bbr_cpu/rule.h.
pub const RULES: [&str; 2] = ["paper", "schedule"];

/// The rule that it follows unless another is asked for.
pub const DEFAULT_RULE: &str = "schedule";
