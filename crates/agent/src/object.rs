//! Opens and loads compiled BPF programs.

use crate::libbpf_log;
use libbpf_rs::{Object, ObjectBuilder, OpenObject};
use std::path::Path;
use thalweg_store::Problem;

/// Maximum number of the log's last lines in an error of [`load`]. The verifier's reason is at the end.
const SHOWN_LINES: usize = 12;

/// Opens a compiled BPF object. `place` is its name in errors.
///
/// # Errors
/// If the bytes are not a BPF object, or `place` contains a NUL byte.
pub fn open(bytes: &[u8], place: &str) -> Result<OpenObject, Problem> {
    libbpf_log::keep();
    let name = Path::new(place).file_stem().unwrap_or_default().to_string_lossy();
    let mut builder = ObjectBuilder::default();
    let builder = builder
        .name(name.as_ref())
        .map_err(|error| Problem::refused("bad-path", place, error, "a path without NUL bytes", "rename the file"))?;
    builder.open_memory(bytes).map_err(|error| {
        let message = libbpf_log::last(1).map(|message| format!("{message}: ")).unwrap_or_default();
        broken(place, format!("an invalid BPF object ({message}{error:#})"))
    })
}

/// Returns the error for a file that libbpf cannot open as an object.
pub fn broken(place: &str, found: String) -> Problem {
    Problem::refused(
        "broken-object",
        place,
        found,
        "a BPF object with type information, as compiled by `clang -O2 -g -target bpf -c`",
        "compile it again",
    )
}

/// Loads the programs into the kernel.
///
/// # Errors
/// If the kernel rejects them.
pub fn load(open: OpenObject, place: &str) -> Result<Object, Problem> {
    open.load().map_err(|error| {
        let tail = libbpf_log::last(SHOWN_LINES)
            .map(|message| format!("; its last messages:\n    {message}\n "))
            .unwrap_or_default();
        Problem::failed(
            "kernel-refuses",
            place,
            format!("a program that the kernel rejects: {error:#}{tail}"),
            "a program that passes the kernel's verifier",
            "this kernel may lack a feature that the program needs: compare `uname -r` with the program's \
             documentation",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::ErrorExt;
    use rustix::io::Errno;
    use thalweg_store::Exit;

    #[test]
    fn a_libbpf_error_is_classified_by_its_underlying_cause() {
        let error = libbpf_rs::Error::from_raw_os_error(Errno::MFILE.raw_os_error()).context("failed to open object");
        let problem = Problem::missing("no-btf", "this kernel", error, "type information", "boot another kernel");
        assert_eq!((problem.exit, problem.code), (Exit::Exhausted, "too-few-descriptors"), "{problem}");
        assert!(problem.found.contains("failed to open object: Too many open files"), "{problem}");
    }
}
