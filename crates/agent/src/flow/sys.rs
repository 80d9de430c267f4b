//! Memory that is shared with the kernel, and that changes while it is read.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull, null_mut};
use std::sync::atomic::AtomicU64;

/// A shared memory mapping of a file.
#[derive(Debug)]
pub(super) struct Shared {
    start: NonNull<u8>,
    length: usize,
}

impl Shared {
    /// Maps the first bytes of a file.
    ///
    /// # Errors
    /// If the kernel refuses to map the file for reading and writing.
    pub(super) fn of(file: impl AsFd, length: usize) -> io::Result<Shared> {
        // SAFETY: the kernel chooses the address, so the mapping overlaps nothing.
        let start = unsafe { mmap(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Shared { start, length })
    }

    /// Returns the 64-bit number at an offset that is a multiple of eight bytes.
    pub(super) fn number(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at + 8 <= self.length, "it is within the memory");
        // SAFETY: the mapping lives as long as `self`, and all writes to this number are atomic.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Copies bytes; the caller ensures that they are not written concurrently.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.length, "they are within the memory");
        // SAFETY: the source is within the mapping, and `into` does not overlap it.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr().add(at), into.as_mut_ptr(), into.len()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no borrow of it remains.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
