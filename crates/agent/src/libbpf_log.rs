//! Captures the log of libbpf and of the kernel's verifier for error messages.
//!
//! The log hook of libbpf-rs panics on text that is not UTF-8, within a callback from C, which aborts the process. This
//! hook accepts any bytes.
#![allow(unsafe_code)]

use libbpf_rs::libbpf_sys::{LIBBPF_WARN, libbpf_print_fn_t, libbpf_set_print};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size of the longest message in bytes: libbpf allocates up to 16 MiB for the verifier's log.
const BUFFER_BYTES: usize = 17 << 20;

/// Maximum number of bytes kept of a message: the last ones, which contain the verifier's reason.
const KEPT_BYTES: usize = 1 << 16;

const KEPT_MESSAGES: usize = 256;

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn messages() -> MutexGuard<'static, Vec<String>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to capture warnings.
pub fn keep() {
    let function: unsafe extern "C" fn(u32, *const c_char, *mut c_void) -> c_int = keep_message;
    // SAFETY: a `va_list` is passed on as a pointer. The function exists for the lifetime of the process.
    unsafe {
        let function =
            transmute::<unsafe extern "C" fn(u32, *const c_char, *mut c_void) -> c_int, libbpf_print_fn_t>(function);
        libbpf_set_print(function);
    }
}

/// Returns the last non-blank lines of the log, at most `lines`; `None` without such lines.
pub fn last(lines: usize) -> Option<String> {
    let text = messages().concat();
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = &all[all.len().saturating_sub(lines)..];
    (!tail.is_empty()).then(|| tail.join("\n    "))
}

unsafe extern "C" {
    fn vsnprintf(to: *mut c_char, bytes: usize, format: *const c_char, list: *mut c_void) -> c_int;
}

unsafe extern "C" fn keep_message(level: u32, format: *const c_char, list: *mut c_void) -> c_int {
    if level != LIBBPF_WARN {
        return 0;
    }
    let mut buffer = vec![0u8; BUFFER_BYTES];
    // SAFETY: libbpf owns the format and the list, and the written text ends within the buffer.
    if unsafe { vsnprintf(buffer.as_mut_ptr().cast(), buffer.len(), format, list) } < 0 {
        return 0;
    }
    add(CStr::from_bytes_until_nul(&buffer).map_or(&[][..], CStr::to_bytes));
    0
}

fn add(message: &[u8]) {
    let tail = &message[message.len().saturating_sub(KEPT_BYTES)..];
    let mut messages = messages();
    if messages.len() == KEPT_MESSAGES {
        messages.remove(0);
    }
    messages.push(String::from_utf8_lossy(tail).into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_bytes_are_kept_as_text_up_to_the_buffer_size() {
        add(b"[3] STRUCT \xff\xfe size\n");
        assert_eq!(last(1).unwrap(), "[3] STRUCT \u{fffd}\u{fffd} size");
        for _ in 0..2 * KEPT_MESSAGES {
            add(&[b'a'; 2 * KEPT_BYTES]);
        }
        add(b"\nthe reason\n");
        assert_eq!(last(1).unwrap(), "the reason");
        assert!(messages().len() <= KEPT_MESSAGES && messages().iter().all(|message| message.len() <= KEPT_BYTES));
    }
}
