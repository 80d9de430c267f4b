//! The user's cache folder: `thalweg` in `XDG_CACHE_HOME`, or in `~/.cache`.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files that were not used for longer than this time are removed.
const FORGET: Duration = Duration::from_secs(7 * 24 * 3600);

/// Returns the folder, which need not exist; `None` without `XDG_CACHE_HOME` and `HOME`.
pub(crate) fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("thalweg"))
}

/// Writes a file atomically, even if two processes write it concurrently.
pub(crate) fn keep(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().unwrap_or(place);
    fs::create_dir_all(folder)?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}-{}", std::process::id()));
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, place));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// Removes the files of a folder that have not been used for [`FORGET`].
pub(crate) fn forget(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let used = entry.metadata().and_then(|about| about.accessed().or_else(|_| about.modified()));
        if used.is_ok_and(|used| SystemTime::now().duration_since(used).is_ok_and(|ago| ago > FORGET)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the SHA-256 of a file in hexadecimal.
pub(crate) fn checksum(file: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hasher)?;
    Ok(hexadecimal(hasher))
}

/// Returns the digest of a hasher in hexadecimal.
pub(crate) fn hexadecimal(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
