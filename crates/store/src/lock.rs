//! One engine at a time on a run directory.

use crate::error::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

/// Name of the file that is locked. It stays when the lock is gone.
pub const FILE: &str = ".lock";

/// The right to write a run directory. The system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `directory`, or says who has it.
    pub fn take(directory: &Path) -> Result<Lock, Error> {
        let path = directory.join(FILE);
        let failed = |source| Error::io(directory, &path, source);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
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
        Ok(Lock { _file: file })
    }
}
