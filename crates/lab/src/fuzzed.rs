//! Parsers of this crate, for `fuzz/`. They accept arbitrary bytes.

use crate::{diag, relay, vm};

/// Parses a netlink datagram and its messages.
pub fn netlink(bytes: &[u8]) {
    diag::fuzz(bytes);
}

/// Parses the ELF file of a program or library for a guest.
pub fn elf(bytes: &[u8]) {
    vm::image::fuzz_elf(bytes);
}

/// Parses the kernel image of a guest.
pub fn kernel_image(bytes: &[u8]) {
    vm::image::fuzz_kernel(bytes);
}

/// Parses a packet capture.
pub fn capture(bytes: &[u8]) {
    let _ = relay::capture::read_from(bytes, &mut |_| {});
}
