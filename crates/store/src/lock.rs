//! Directory locks.

use crate::error::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Name of the lock file, which remains when the lock is released.
pub const FILE: &str = ".lock";

/// The exclusive right to write a directory. The system releases it when the process ends for any reason.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Acquires the lock of `directory`.
    ///
    /// # Errors
    /// If it is already held ([`Error::Busy`], with the pid if known), or the directory cannot be written.
    pub fn take(directory: &Path) -> Result<Lock, Error> {
        let path = directory.join(FILE);
        let failed = |source| Error::io(directory, &path, source);
        // A link created by another user is not followed, because the file is written below.
        let no_follow = OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(no_follow);
        let mut file = options.open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(failed)?;
                return Err(Error::Busy { directory: directory.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Lock { file })
    }

    /// Whether this is still the lock of `directory`, which may have been moved or recreated.
    pub fn is_of(&self, directory: &Path) -> bool {
        let number = |file: std::io::Result<std::fs::Metadata>| file.map(|file| (file.dev(), file.ino())).ok();
        let locked = number(self.file.metadata());
        locked.is_some() && locked == number(std::fs::metadata(directory.join(FILE)))
    }
}
