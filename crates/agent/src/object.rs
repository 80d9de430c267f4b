//! Compiled BPF programs: opened, loaded, and what was said about them.

use crate::problem::Problem;
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel, set_print};
use std::path::Path;
use std::sync::Mutex;

/// What libbpf and the kernel's verifier have said.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// How many of its last lines an error shows: the verifier's reason is at the end.
const SHOWN_LINES: usize = 12;

/// Opens a compiled object. `place` names it in errors.
///
/// # Errors
/// If it is none.
pub fn open(bytes: &[u8], place: &str) -> Result<OpenObject, Problem> {
    set_print(Some((PrintLevel::Warn, |_, line| {
        SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
    })));
    let name = Path::new(place).file_stem().unwrap_or_default().to_string_lossy();
    let mut builder = ObjectBuilder::default();
    let builder = builder
        .name(name.as_ref())
        .map_err(|error| Problem::refused("bad-path", place, error, "a path without NUL", "rename the file"))?;
    builder.open_memory(bytes).map_err(|error| {
        Problem::refused(
            "broken-object",
            place,
            format!("something else ({})", said(1).unwrap_or_else(|| error.to_string())),
            "a BPF object with type information, as `clang -O2 -g -target bpf -c` makes it",
            "compile it again",
        )
    })
}

/// Has the kernel check and take the programs.
///
/// # Errors
/// If it refuses them.
pub fn load(open: OpenObject, place: &str) -> Result<Object, Problem> {
    open.load().map_err(|error| {
        let tail =
            said(SHOWN_LINES).map(|said| format!("; the last that was said:\n    {said}\n ")).unwrap_or_default();
        Problem::failed(
            "kernel-refuses",
            place,
            format!("the kernel does not take it: {error}{tail}"),
            "a program that passes the kernel's verifier",
            "what the program needs may not be in this kernel: compare `uname -r` with its documentation",
        )
    })
}

/// The last lines of what libbpf and the verifier have said; nothing if they were silent.
pub fn said(lines: usize) -> Option<String> {
    let said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).concat();
    let all: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = &all[all.len().saturating_sub(lines)..];
    (!tail.is_empty()).then(|| tail.join("\n    "))
}
