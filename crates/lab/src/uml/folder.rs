//! The folder of a guest: private, locked while its supervisor runs, and removed with it.
//!
//! A supervisor that is killed with SIGKILL leaves its folder behind. The lock, which the kernel releases with the
//! process, distinguishes such a folder from one in use.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "thalweg-guest-";

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Folder {
    /// Creates a folder below `parent` that only this user can read, after removing the unlocked folders of this user.
    ///
    /// # Errors
    /// If the folder cannot be created or locked.
    pub fn make(parent: &Path) -> io::Result<Folder> {
        sweep(parent);
        for attempt in 0..100 {
            let path = parent.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            let created = DirBuilder::new().mode(0o700).create(&path).and_then(|()| lock(&path));
            match created {
                Ok(lock) => return Ok(Folder { path, _lock: lock }),
                // The folder was left by a process with the same id, or another supervisor removed it between creation
                // and lock.
                Err(error) if is_lost_race(&error) => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            }
        }
        Err(io::Error::other(format!("{} has too many folders named {PREFIX}", parent.display())))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Terminates the processes that a killed supervisor left in the guest's folder, and removes the folder.
///
/// Processes of the guest's programs can outlive the guest kernel's process.
pub(super) fn remove_left(folder: &Path) {
    let Ok(folder_itself) = fs::metadata(folder) else { return };
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let folder_itself = identity(folder_itself);
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // The working directory of another user's process may be unreadable; such a process is not of this guest.
        let is_guests = fs::metadata(process.path().join("cwd")).is_ok_and(|cwd| identity(cwd) == folder_itself);
        if let (Some(pid), true) = (pid, is_guests) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let _ = fs::remove_dir_all(folder);
}

fn is_lost_race(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound | io::ErrorKind::WouldBlock)
}

/// Locks a folder without following a symbolic link.
///
/// # Errors
/// `WouldBlock`: another process holds the lock. `NotFound`: the folder does not exist, or was removed meanwhile.
fn lock(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(path, flags, Mode::empty())?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    fs::symlink_metadata(path)?;
    Ok(folder)
}

fn sweep(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_guests = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_guests && entry.metadata().is_ok_and(|folder| folder.is_dir() && folder.uid() == user) {
            if let Ok(_lock) = lock(&entry.path()) {
                remove_left(&entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_directory_in_use_is_kept_and_an_orphaned_one_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let orphaned = parent.path().join("thalweg-guest-1-0");
        fs::create_dir(&orphaned).unwrap();
        let mut process = Command::new("sleep").arg("1000").current_dir(&orphaned).spawn().unwrap();
        fs::write(orphaned.join("words.jsonl"), "{}").unwrap();
        let first = Folder::make(parent.path()).unwrap();
        assert!(!orphaned.exists(), "no supervisor held it");
        assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGKILL));
        let second = Folder::make(parent.path()).unwrap();
        assert!(first.path().exists() && second.path().exists());
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn other_names_and_links_are_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join("thalweg-guest-1-0")).unwrap();
        fs::create_dir(parent.path().join("another")).unwrap();
        drop(Folder::make(parent.path()).unwrap());
        assert!(elsewhere.path().join("precious").exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
    }
}
