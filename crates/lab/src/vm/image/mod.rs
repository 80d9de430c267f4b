//! The files that a guest boots: a kernel with its modules, and its initial file system.

mod archive;
mod elf;
mod identity;
pub(super) mod initramfs;
mod kernel;
pub(super) mod modules;
pub(super) mod qdisc;

pub use kernel::VmKernel;

/// Parses any bytes as the ELF file of a program.
pub(crate) fn fuzz_elf(bytes: &[u8]) {
    let _ = elf::loaded(bytes.to_vec());
}

/// Parses any bytes as a kernel image.
pub(crate) fn fuzz_kernel(bytes: &[u8]) {
    let _ = identity::release(bytes);
}
