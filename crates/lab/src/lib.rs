//! Experiments on real kernels.
//!
//! ```text
//!  thalweg-engine run ──► run: one experiment ──► net: namespaces, interfaces, qdiscs
//!                              │ JSON lines over pipes (protocol)
//!       ┌──────────────────────┼───────────────────────┐
//!  host: sender(s)        host: router            host: receiver        each a process in a namespace or guest
//!  traffic, diag          relay, or netem         traffic
//! ```
//!
//! A host is the process `thalweg-engine host` ([`host::serve`]). The module [`protocol`] defines the commands to it
//! and its answers; its role reads commands and writes events through [`stage`].
//!
//! `unsafe` code is only in files named `sys.rs`, behind safe functions.

mod algorithms;
mod cache;
pub mod clock;
pub mod diag;
pub mod error;
#[doc(hidden)]
pub mod fuzzed;
pub mod host;
pub mod live;
pub mod meter;
pub mod net;
mod packet_socket;
pub mod program;
pub mod protocol;
pub mod relay;
pub mod run;
pub mod session;
pub mod stage;
mod stamps;
pub mod traffic;
pub mod uml;
pub mod vm;
mod wakeup;

pub use algorithms::built_in;
pub use error::Error;
pub use uml as guest;
