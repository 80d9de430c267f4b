//! The user's folder for what can be made again: `thalweg` in `XDG_CACHE_HOME`, or in `~/.cache`.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder; nothing where the user has no home. It need not exist.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("thalweg"))
}

/// Writes a file that is complete or absent, also when two write it at once.
pub(crate) fn keep(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    fs::create_dir_all(folder)?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}-{}", std::process::id()));
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, place));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn checksum(file: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hasher)?;
    Ok(hexadecimal(hasher))
}

/// What a hasher has come to.
pub(crate) fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
