//! Loads memory into the caches before an event needs it.
//!
//! With many flows, packets and connections leave the first caches between two events. The next arrival is known one
//! event earlier.

#![allow(unsafe_code)] // A prefetch instruction takes a pointer. It reads nothing that a program can observe.

#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Starts to load a value into the caches. Does nothing on other processors than x86-64.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::from_ref(value).cast::<i8>().wrapping_add(offset);
        // SAFETY: the instruction is a hint, for which any address is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
