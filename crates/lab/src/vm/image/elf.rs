//! Finds what a program needs to run in a guest: its loader, its libraries, and the loaded part of its file.
//!
//! Source: elf(5), ld.so(8).

use std::io;
use std::path::Path;
use std::process::Command;

/// Offsets in the header of a 64-bit ELF file, and the header's size.
const PROGRAM_HEADERS_AT: usize = 0x20;
const SECTION_HEADERS_AT: usize = 0x28;
const PROGRAM_HEADER_SIZE: usize = 0x36;
const PROGRAM_HEADER_COUNT: usize = 0x38;
const SECTION_HEADER_COUNT: usize = 0x3c;
const HEADER_SIZE: usize = 0x40;

/// Types of segments.
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;

/// A program or library without the part that is not loaded, such as debugging information.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Content of the reduced file.
    pub bytes: Vec<u8>,
    /// Path of the dynamic loader; `None` if the program needs none.
    pub loader: Option<String>,
}

/// Reads a 64-bit, little-endian ELF file.
///
/// # Errors
/// If the file cannot be read, or is not a 64-bit ELF file.
pub(super) fn read(path: &Path) -> io::Result<Loaded> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(named)?;
    loaded(bytes).ok_or_else(|| named(io::Error::other("it is not a 64-bit ELF file")))
}

pub(super) fn loaded(mut bytes: Vec<u8>) -> Option<Loaded> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = word(&bytes, PROGRAM_HEADERS_AT)?;
    let (size, count) = (half(&bytes, PROGRAM_HEADER_SIZE)?, half(&bytes, PROGRAM_HEADER_COUNT)?);
    let (mut end, mut loader) = (first.checked_add(size * count)?, None);
    for header in (first..end).step_by(size.max(1)).take(count) {
        let kind = u32::from_le_bytes(*bytes.get(header..)?.first_chunk()?);
        let (at, length) = (word(&bytes, header + 0x08)?, word(&bytes, header + 0x20)?);
        match kind {
            LOAD => end = end.max(at.checked_add(length)?),
            INTERPRETER => {
                let name = bytes.get(at..at.checked_add(length)?)?;
                loader = Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned());
            }
            _ => {}
        }
    }
    if end > bytes.len() || end < HEADER_SIZE {
        return None;
    }
    bytes.truncate(end);
    // The table of sections, which only linkers and debuggers need, may have been cut off.
    bytes[SECTION_HEADERS_AT..SECTION_HEADERS_AT + 8].fill(0);
    bytes[SECTION_HEADER_COUNT..SECTION_HEADER_COUNT + 4].fill(0);
    Some(Loaded { bytes, loader })
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?).into())
}

/// Returns the libraries of a program, at the paths at which its loader finds them.
///
/// # Errors
/// If the loader cannot be run, or does not find a library.
pub(super) fn libraries(loader: &str, program: &Path) -> io::Result<Vec<String>> {
    let answer = Command::new(loader).arg("--list").arg(program).env("LC_ALL", "C").output()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    if !answer.status.success() || text.contains("not found") {
        let stderr = String::from_utf8_lossy(&answer.stderr);
        return Err(io::Error::other(format!("{}: {text}{stderr}", program.display())));
    }
    Ok(text.lines().filter_map(place_of).map(str::to_owned).collect())
}

/// Returns the path in a line such as `libm.so.6 => /lib/libm.so.6 (0x7f00)`; the line of the vDSO has no path.
fn place_of(line: &str) -> Option<&str> {
    let place = line.split("=>").last()?.split(" (").next()?.trim();
    place.starts_with('/').then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_stripped_to_its_loaded_segments_still_runs() {
        let program = std::env::current_exe().unwrap();
        let loaded = read(&program).unwrap();
        assert!(loaded.bytes.len() < std::fs::metadata(&program).unwrap().len() as usize);
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        std::fs::write(&copy, &loaded.bytes).unwrap();
        std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let answer = Command::new(&copy).arg("--list").output().unwrap();
        assert!(
            String::from_utf8_lossy(&answer.stdout).contains("a_program_stripped_to_its_loaded_segments_still_runs")
        );
        if let Some(loader) = loaded.loader {
            let libraries = libraries(&loader, &program).unwrap();
            assert!(libraries.iter().any(|place| place.contains("libc.so")), "{libraries:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_a_program_is_rejected_by_name() {
        let error = read(Path::new("/etc/passwd")).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd") && error.contains("not a 64-bit ELF file"), "{error}");
        assert_eq!(loaded(b"\x7fELF\x02\x01 and no more".to_vec()), None);
    }

    #[test]
    fn ldd_output_is_parsed_with_and_without_arrows() {
        assert_eq!(place_of("\tlibm.so.6 => /lib/libm.so.6 (0x00007f)"), Some("/lib/libm.so.6"));
        assert_eq!(place_of("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)"), Some("/lib64/ld-linux-x86-64.so.2"));
        assert_eq!(place_of("\tlinux-vdso.so.1 (0x00007f)"), None);
    }
}
