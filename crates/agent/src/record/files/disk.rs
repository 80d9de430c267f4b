//! The folder of records, which has only one writer.

use super::folder::{self, Listing, Name, seconds};
use super::merge::Failure;
use super::rotation::Rule;
use super::settings::{FOLDER_MODE, Settings};
use super::{Health, Rows};
use crate::log;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use thalweg_store::{Error, Lock, Problem, Repeats, RowsFile, remove_temporary};

/// Pause after a merge that could not be written, because frequent attempts would not help a full disk.
const MERGE_AGAIN: Duration = Duration::from_secs(60);

/// The folder.
#[derive(Debug)]
pub struct Disk {
    settings: Settings,
    lock: Lock,
    /// Number of the last flush; its file may be merged or removed already.
    last: u64,
    /// Unreadable files, which are not merged.
    aside: BTreeSet<Name>,
    /// Time and reason of the last merge that could not be written; `None` after a successful one.
    failed: Option<(Instant, String)>,
    /// The fields of [`Health`] that are about files.
    health: Health,
    /// Encoded columns of earlier flushes, to be reused.
    repeats: Repeats,
}

impl Disk {
    /// Opens the folder, or creates it. Removes files that are unfinished or part of a merged file.
    ///
    /// # Errors
    /// If the settings are inconsistent, the folder is not writable, or another agent writes to it.
    pub fn open(settings: Settings) -> Result<Disk, Problem> {
        settings.check()?;
        let folder = &settings.folder;
        let failed = |error: io::Error| unusable(folder, error);
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder).map_err(failed)?;
        let lock = Lock::take(folder).map_err(|error| refused(folder, error))?;
        remove_temporary(folder).map_err(failed)?;
        let listing = Listing::of(folder).map_err(failed)?;
        listing.parts.iter().try_for_each(|&part| folder::remove(folder, part)).map_err(failed)?;
        let health = Health { files: listing.files.len() as u64, bytes: listing.bytes(), ..Health::default() };
        let (aside, repeats) = (BTreeSet::new(), Repeats::default());
        Ok(Disk { last: listing.last(), settings, lock, aside, failed: None, health, repeats })
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        &self.settings.folder
    }

    /// Returns the state of the files; the other fields of [`Health`] are not set.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Writes rows as one complete file. If that fails, no part of the file remains.
    pub fn write(&mut self, rows: &[Rows], now: SystemTime) -> Result<(), String> {
        self.try_to_write(rows, now).map_err(|error| self.trouble("cannot write to", &error))
    }

    /// Removes files that were merged or exceed the size limit, and returns the groups of files to be merged. Soon
    /// after a merge that could not be written, returns its error instead.
    pub fn due(&mut self, now: SystemTime) -> Result<Vec<Vec<Name>>, String> {
        let listing = self.keep_lock().and_then(|()| self.make_room(0));
        let listing = listing.map_err(|error| self.trouble("cannot merge or remove files in", &error))?;
        if let Some((when, why)) = &self.failed {
            if when.elapsed() < MERGE_AGAIN {
                return Err(why.clone());
            }
        }
        self.aside.retain(|name| listing.files.iter().any(|file| file.name == *name));
        let rule = Rule { rotate: self.settings.rotate, rotate_bytes: self.settings.rotate_bytes };
        Ok(rule.due(&listing.files, &self.aside, seconds(now)))
    }

    /// Handles the result of a merge.
    pub fn merged(&mut self, parts: &[Name], outcome: Result<(), Failure>) -> Result<(), String> {
        match outcome {
            Ok(()) => {
                self.failed = None;
                self.health.files_merged += parts.len() as u64;
                self.make_room(0).map(drop).map_err(|error| self.trouble("cannot merge or remove files in", &error))
            }
            Err(Failure::GivenUp) => Ok(()),
            Err(Failure::Unreadable(name, error)) => {
                self.aside.insert(name);
                let path = self.settings.folder.join(name.text());
                log::warning(&format!("records: {} cannot be read, and is left unchanged: {error}", path.display()));
                Ok(())
            }
            Err(Failure::Write(error)) => {
                let why = self.trouble("cannot merge files in", &error);
                self.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    fn try_to_write(&mut self, rows: &[Rows], now: SystemTime) -> io::Result<()> {
        let Some(like) = rows.first() else { return Ok(()) };
        self.keep_lock()?;
        let at_s = seconds(now);
        // Based on the clock, so that numbers also increase if the folder was emptied in between.
        let last = self.last.max(Listing::of(&self.settings.folder)?.last());
        let number = at_s.max(last + 1);
        let name = Name { first: number, last: number, at_s };
        let mut file = RowsFile::create(&self.settings.folder.join(name.text()), like)?;
        rows.iter().try_for_each(|rows| file.write_beside(rows, &mut self.repeats))?;
        let mut file = file.finish()?;
        let bytes = file.file().metadata()?.len();
        self.make_room(bytes)?;
        file.publish()?;
        self.last = number;
        self.health.files_written += 1;
        self.health.files += 1;
        self.health.bytes += bytes;
        // An error is ignored: after an error of the flush, the rows would be written a second time.
        let _ = folder::sync(&self.settings.folder);
        Ok(())
    }

    /// Locks the folder again if it was recreated: the old lock does not protect the new folder.
    fn keep_lock(&mut self) -> io::Result<()> {
        let folder = &self.settings.folder;
        if self.lock.is_of(folder) {
            return Ok(());
        }
        self.lock = Lock::take(folder).map_err(|error| match error {
            Error::Busy { pid, .. } => io::Error::other(format!("{} now writes to this folder", process(pid))),
            Error::Io { source, .. } | Error::Shortage { source, .. } => source,
            other => io::Error::other(other),
        })?;
        Ok(())
    }

    /// Removes the oldest files until `coming` bytes fit. Parts of a merged file are removed first, because they would
    /// count as current again if the merged file were removed before them.
    fn make_room(&mut self, coming: u64) -> io::Result<Listing> {
        let folder = &self.settings.folder;
        let mut listing = Listing::of(folder)?;
        for part in std::mem::take(&mut listing.parts) {
            folder::remove(folder, part)?;
        }
        let mut bytes = listing.bytes();
        let mut removed = 0;
        for file in &listing.files {
            if bytes + coming <= self.settings.max_bytes {
                break;
            }
            folder::remove(folder, file.name)?;
            bytes -= file.bytes;
            removed += 1;
        }
        listing.files.drain(..removed);
        self.health.files_removed += removed as u64;
        (self.health.files, self.health.bytes) = (listing.files.len() as u64, bytes);
        Ok(listing)
    }

    fn trouble(&self, what: &str, error: &dyn fmt::Display) -> String {
        format!("{what} {}: {error}", self.settings.folder.display())
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn refused(folder: &Path, error: Error) -> Problem {
    match error {
        Error::Busy { pid, .. } => Problem::failed(
            "busy",
            &folder.display().to_string(),
            format!("{} writing records here", process(pid)),
            "one agent per folder",
            "stop that agent first, or choose another folder with --out",
        ),
        Error::Io { source, .. } | Error::Shortage { source, .. } => unusable(folder, source),
        other => unusable(folder, io::Error::other(other)),
    }
}

fn unusable(folder: &Path, error: io::Error) -> Problem {
    let place = folder.display().to_string();
    let hint = format!("check ls -ld '{place}' and df -h '{place}', or choose another folder with --out");
    Problem::failed("not-accessible", &place, error, "a writable folder", &hint)
}
