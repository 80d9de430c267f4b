//! Lists the record files of a folder.
//!
//! Flushes are numbered in increasing order. The name of a file contains the numbers of its first and last flush. A
//! file whose range lies within the range of another has been merged into it, and readers skip it.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name of a record file: `20260131T120000Z-1769860800-1769864390.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// Number of the file's first flush.
    pub first: u64,
    /// Number of the file's last flush.
    pub last: u64,
    /// UNIX time of the first flush, in seconds.
    pub at_s: u64,
}

impl Name {
    /// Parses a file name; `None` for other files.
    pub fn parse(text: &str) -> Option<Name> {
        let (stamp, numbers) = text.strip_suffix(".parquet")?.split_once('-')?;
        let (first, last) = numbers.split_once('-')?;
        let (date, time) = stamp.strip_suffix('Z')?.split_once('T')?;
        let part = |text: &str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
        let date = [part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?].join("-");
        let time = [part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?].join(":");
        let at = humantime::parse_rfc3339(&format!("{date}T{time}Z")).ok()?;
        let name = Name { first: first.parse().ok()?, last: last.parse().ok()?, at_s: seconds(at) };
        // Rejects other spellings of the same name.
        (name.first <= name.last && name.text() == text).then_some(name)
    }

    /// Returns the file name.
    pub fn text(&self) -> String {
        let at = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(self.at_s)).to_string();
        let stamp: String = at.chars().filter(|sign| !matches!(sign, '-' | ':')).collect();
        format!("{stamp}-{:010}-{:010}.parquet", self.first, self.last)
    }

    /// Returns whether the file holds more than one flush.
    pub fn is_merged(&self) -> bool {
        self.first != self.last
    }
}

/// A file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name.
    pub name: Name,
    /// Size in bytes.
    pub bytes: u64,
}

/// The content of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The current files, the oldest first.
    pub files: Vec<Listed>,
    /// Files that are part of merged ones.
    pub parts: Vec<Name>,
}

impl Listing {
    /// Scans a folder.
    pub fn of(folder: &Path) -> io::Result<Listing> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().and_then(Name::parse) else { continue };
            match entry.metadata() {
                Ok(file) if file.is_file() => files.push(Listed { name, bytes: file.len() }),
                // Not a regular file.
                Ok(_) => {}
                // The file was removed since the folder was listed.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Listing::sorted(files))
    }

    /// Separates current files from parts of merged ones.
    pub fn sorted(mut files: Vec<Listed>) -> Listing {
        // In this order, a file follows those that it is part of.
        files.sort_by_key(|file| (file.name.first, Reverse(file.name.last), file.name.at_s));
        let (mut listing, mut widest) = (Listing::default(), None);
        for file in files {
            let numbers = (file.name.first, file.name.last);
            match widest {
                Some((first, last)) if file.name.last <= last && numbers != (first, last) => {
                    listing.parts.push(file.name);
                }
                _ => {
                    widest = Some(numbers);
                    listing.files.push(file);
                }
            }
        }
        listing
    }

    /// Returns the total size of the current files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the largest flush number.
    pub fn last(&self) -> u64 {
        self.files.iter().map(|file| file.name.last).max().unwrap_or(0)
    }
}

/// Removes a file, if it exists.
pub fn remove(folder: &Path, name: Name) -> io::Result<()> {
    match fs::remove_file(folder.join(name.text())) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Syncs the directory entries of a folder to the disk.
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Converts a time to UNIX time in whole seconds.
pub fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
