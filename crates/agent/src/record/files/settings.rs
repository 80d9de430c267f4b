//! Settings of a writer of records.

use std::path::PathBuf;
use std::time::Duration;
use thalweg_store::Problem;

/// Mode of created folders.
pub const FOLDER_MODE: u32 = 0o750;

/// Minimum of --flush, because flushes are numbered by their UNIX time in seconds.
const MIN_FLUSH: Duration = Duration::from_secs(1);

/// Settings of a writer of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Folder of the files (--out).
    pub folder: PathBuf,
    /// Interval between flushes (--flush).
    pub flush: Duration,
    /// The time that a merged file covers (--rotate).
    pub rotate: Duration,
    /// The size in bytes at which files are merged, even if --rotate has not passed (--rotate-size).
    pub rotate_bytes: u64,
    /// Maximum size of all files together in bytes (--max-size).
    pub max_bytes: u64,
}

impl Settings {
    /// Returns the default settings of the command line.
    #[cfg(test)]
    pub fn of(folder: PathBuf) -> Settings {
        Settings {
            folder,
            flush: Duration::from_secs(10),
            rotate: Duration::from_secs(3600),
            rotate_bytes: 64_000_000,
            max_bytes: 10_000_000_000,
        }
    }

    /// Checks that the settings are consistent.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let refused = |flag: &str, found: String, expected: &str, hint: &str| {
            Err(Problem::refused("bad-settings", flag, found, expected, hint))
        };
        if self.flush < MIN_FLUSH {
            return refused("--flush", format!("{:?}", self.flush), "1s or longer", "--flush 1s");
        }
        if self.rotate < self.flush {
            let found = format!("{:?}, shorter than --flush ({:?})", self.rotate, self.flush);
            return refused("--rotate", found, "at least as long as --flush", "--rotate 1h");
        }
        if self.max_bytes / 2 < self.rotate_bytes {
            let (max, rotate) = (self.max_bytes, self.rotate_bytes);
            let found = format!("{max} bytes, less than two files of --rotate-size ({rotate} bytes)");
            let hint = format!("raise --max-size, or make files smaller: --max-size {max} --rotate-size {}", max / 4);
            return refused("--max-size", found, "space for two files of --rotate-size", &hint);
        }
        Ok(())
    }
}
