//! Sending hosts in separate virtual machines: the TCP of another kernel, on a processor that can be restricted.
//!
//! ```text
//!  engine ── stdin, stdout ──► qemu (in the host's namespace) ── virtio-serial ──► first process: this program
//!                                │ tap                                                └► thalweg-engine host
//!              router ── s1 ─── eth0 ── bridge ── tap ── virtio-net ── eth0, with the sender's address
//! ```
//!
//! The protocol is that of other hosts ([`crate::protocol`]), over a virtio-serial port instead of a pipe. Router and
//! receiver stay on the machine. A guest has one or two processors ([`processors`]), and boots from memory ([`image`]).
//! Programs that generate flows run in the guest as a second host with a separate port ([`host_files`]).
//!
//! The guest has its own clock. It is compared with the machine's before the start, so that both sides agree on the
//! start time, and at the end, to check that both clocks run at the same speed ([`machine`]).

pub mod contention;
pub(crate) mod host_files;
pub(crate) mod image;
pub mod inside;
mod machine;
mod order;
pub(crate) mod processors;
mod sys;

pub use image::VmKernel;
pub use machine::{Accelerator, Guests, Machine};
pub(crate) use machine::{CLOCK_QUESTIONS, ClockReading, Comparison, last_lines};
