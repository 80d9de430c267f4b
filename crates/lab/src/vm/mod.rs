//! Sending hosts in virtual machines of their own: another kernel's TCP, on a processor that can be taken away.
//!
//! ```text
//!  engine ── stdin, stdout ──► qemu (in the host's namespace) ── virtio-serial ──► first process of the guest: this program
//!                                │ tap                                                └► thalweg-engine host
//!              router ── s1 ─── eth0 ── bridge ── tap ── virtio-net ── eth0, with the sender's address
//! ```
//!
//! What a host is told and answers is the same as elsewhere ([`crate::protocol`]); a virtio-serial port carries it instead
//! of a pipe. Router and receiver stay on the machine. A guest has one processor, boots from memory ([`initramfs`]), and
//! is gone with the experiment: it ends when its port does, and QEMU is killed with the engine.
//!
//! The guest's clock is another one than ours: it is compared before the start, so that both know when that is, and again
//! at the end, which tells whether they run at the same speed ([`clock`]).

pub(crate) mod algorithms;
mod archive;
mod clock;
pub mod contention;
mod elf;
mod guests;
mod identity;
mod initramfs;
pub mod inside;
mod kernel;
mod modules;
mod probe;
mod qdisc;
mod qemu;
mod sys;

pub(crate) use clock::{Asked, Comparison, QUESTIONS as CLOCK_QUESTIONS};
pub use guests::{Guests, Machine};
pub use kernel::Kernel;
pub(crate) use probe::last_lines;
pub use qemu::Accelerator;

use serde::{Deserialize, Serialize};

/// What a guest is to do: a file in its first file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Say what the kernel has.
    Probe,
    /// Play a host.
    Host {
        /// Commands of `ip` that make its network.
        network: Vec<String>,
        /// Congestion controls to load.
        algorithms: Vec<algorithms::Algorithm>,
        /// Queue discipline of its interface; nothing: the one that its kernel gives it.
        qdisc: Option<qdisc::Qdisc>,
    },
}

/// What a guest's kernel has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traits {
    /// Its release.
    pub release: String,
    /// Congestion controls that a connection can be given.
    pub algorithms: Vec<String>,
    /// Why the agent cannot load its algorithm there; nothing: it can, or there is no agent.
    pub agent_fails: Option<String>,
}

/// Name of the port that joins a guest with the engine.
pub(crate) const PORT: &str = "thalweg";
