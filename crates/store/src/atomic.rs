//! Atomic files: a file is either complete or absent.
//!
//! A file is written under a temporary name in its own directory, synced, and renamed. A reader of the directory sees
//! either the old state or the new one, even after a crash or a power failure.
//!
//! The renames are not synced: file systems such as ext4, XFS and btrfs write them in order. A power failure may
//! therefore undo the last renames, and the affected experiments are repeated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prefix of temporary names.
const PREFIX: &str = ".tmp-";

/// A file open for writing under a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub struct Pending {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl Pending {
    /// Creates a file that will become `target`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(target: &Path) -> io::Result<Pending> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let temporary = target.with_file_name(format!("{PREFIX}{}-{number}", std::process::id()));
            // Never writes to a file that another process has left under this name, or to a link that another user has
            // created.
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok(Pending { file: file?, temporary, target: target.to_owned() }),
            }
        }
    }

    /// Returns the open file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Returns the final path.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the temporary path.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    /// If the system reports a write error.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn publish(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.target)
        // `Drop` then finds no temporary file, which is not an error.
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // If this fails, the next start removes the file.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Returns whether a file name is one of the temporary names of this module.
pub fn is_temporary(name: &str) -> bool {
    owner(name).is_some()
}

/// Returns the id of the process that has created a temporary file; `None` for other names.
fn owner(name: &str) -> Option<u64> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u64>().ok()?;
    process.parse().ok()
}

/// Removes temporary files that terminated processes left in a directory. The caller must ensure that no running
/// process owns one, for example with a lock of the directory.
///
/// # Errors
/// If the directory cannot be read, or a file cannot be removed.
pub fn remove_temporary(directory: &Path) -> io::Result<()> {
    remove_if(directory, |_| true)
}

/// Removes temporary files whose processes no longer exist, from a directory that several processes may use.
///
/// # Errors
/// If the directory cannot be read, or a file cannot be removed.
pub fn remove_orphaned(directory: &Path) -> io::Result<()> {
    remove_if(directory, |process| !Path::new("/proc").join(process.to_string()).exists())
}

fn remove_if(directory: &Path, is_wanted: impl Fn(u64) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_str().and_then(owner).is_some_and(&is_wanted) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_ended_processes_are_orphaned() {
        let folder = tempfile::tempdir().unwrap();
        let own = Pending::create(&folder.path().join("state.json")).unwrap();
        // Process ids are below 2^22.
        let orphan = folder.path().join(".tmp-4194304-0");
        fs::write(&orphan, "half").unwrap();
        remove_orphaned(folder.path()).unwrap();
        assert_eq!((own.path().exists(), orphan.exists()), (true, false));
        remove_temporary(folder.path()).unwrap();
        assert!(!own.path().exists());
    }
}
