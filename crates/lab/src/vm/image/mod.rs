//! What a guest boots: a kernel with its modules, and its first file system.

mod archive;
mod elf;
mod identity;
pub(super) mod initramfs;
mod kernel;
pub(super) mod modules;
pub(super) mod qdisc;

pub use kernel::Kernel;
