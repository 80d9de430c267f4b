//! System errors that indicate an exhausted resource.
//!
//! A caller that retries later can succeed, so these errors must not be reported as a missing feature or a damaged
//! file. Source: errno(3), open(2), fork(2), getrlimit(2).

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{self, ErrorKind};

/// An exhausted resource of the process or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The process has as many open files as `RLIMIT_NOFILE` allows (`EMFILE`).
    Descriptors,
    /// The machine has as many open files as `fs.file-max` allows (`ENFILE`).
    MachineDescriptors,
    /// Memory (`ENOMEM`).
    Memory,
    /// Processes or threads (`EAGAIN` from fork(2) or clone(2)).
    Processes,
    /// Disk space or inodes (`ENOSPC`).
    Disk,
    /// The user's disk quota (`EDQUOT`).
    Quota,
}

/// Raises the soft limit of open files to the hard limit and returns the limit in effect; `None` if it is unlimited.
pub fn raise_open_files() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, the limit stays unchanged.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}

impl Shortage {
    /// Returns the shortage that a system error indicates; `None` for any other error.
    ///
    /// `EAGAIN` counts as a shortage of processes: a socket that would block must be handled before this is called.
    ///
    /// ```
    /// # use std::io::Error;
    /// # use thalweg_store::Shortage;
    /// assert_eq!(Shortage::of(&Error::from_raw_os_error(24)), Some(Shortage::Descriptors));
    /// assert_eq!(Shortage::of(&Error::from_raw_os_error(2)), None);
    /// ```
    pub fn of(error: &io::Error) -> Option<Shortage> {
        match error.kind() {
            ErrorKind::StorageFull => Some(Shortage::Disk),
            ErrorKind::QuotaExceeded => Some(Shortage::Quota),
            ErrorKind::OutOfMemory => Some(Shortage::Memory),
            ErrorKind::WouldBlock => Some(Shortage::Processes),
            // The standard library has no error kind for these two.
            _ => match Errno::from_io_error(error)? {
                Errno::MFILE => Some(Shortage::Descriptors),
                Errno::NFILE => Some(Shortage::MachineDescriptors),
                _ => None,
            },
        }
    }

    /// Returns a stable name for programs.
    pub fn code(self) -> &'static str {
        match self {
            Shortage::Descriptors | Shortage::MachineDescriptors => "too-few-descriptors",
            Shortage::Memory => "too-little-memory",
            Shortage::Processes => "too-few-processes",
            Shortage::Disk | Shortage::Quota => "disk-full",
        }
    }

    /// Returns the actual state, as a phrase that follows "found".
    pub fn what(self) -> &'static str {
        match self {
            Shortage::Descriptors => "the limit of open files of this process reached",
            Shortage::MachineDescriptors => "the limit of open files of this machine reached",
            Shortage::Memory => "no memory left",
            Shortage::Processes => "the limit of processes and threads reached",
            Shortage::Disk => "a full disk",
            Shortage::Quota => "an exhausted disk quota",
        }
    }

    /// Returns how to fix the shortage: a command or a setting.
    pub fn hint(self) -> &'static str {
        match self {
            Shortage::Descriptors => "raise the limit: ulimit -n 4096, or LimitNOFILE=4096 in a systemd unit",
            Shortage::MachineDescriptors => "close programs, or raise the limit as root: sysctl -w fs.file-max=1000000",
            Shortage::Memory => {
                "close other programs, or raise MemoryMax= in a systemd unit; ulimit -v shows another limit"
            }
            Shortage::Processes => {
                "close other programs, or raise the limit: ulimit -u, or TasksMax= in a systemd unit"
            }
            Shortage::Disk => "free space: df -h and df -i show how much there is",
            Shortage::Quota => "free space: quota -s shows your limit",
        }
    }
}
