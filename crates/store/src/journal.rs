//! The journal of a run: `events.jsonl`.
//!
//! Lines are only appended, each with one write, so a reader may follow the file. An incomplete line after a crash or
//! on a full disk is removed: immediately if the process is still running, otherwise at the next start.

use crate::error::Error;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the file.
pub const FILE: &str = "events.jsonl";

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    path: PathBuf,
    file: File,
    length: u64,
}

#[derive(Serialize)]
struct Line<'a, E> {
    at: String,
    #[serde(flatten)]
    event: &'a E,
}

impl Journal {
    /// Opens the journal of a run directory, and removes an incomplete last line.
    pub fn open(directory: &Path) -> Result<Journal, Error> {
        let path = directory.join(FILE);
        let failed = |source| Error::io(directory, &path, source);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
        let length = end_of_last_line(&mut file).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        Ok(Journal { directory: directory.to_owned(), path, file, length })
    }

    /// Appends an event, which must serialize to a JSON object, together with the current time.
    pub fn append(&mut self, event: &impl Serialize) -> Result<(), Error> {
        let line = Line { at: now(), event };
        let text = serde_json::to_string(&line).expect("events are JSON objects");
        self.append_line(&(text + "\n"))
    }

    /// Appends a line, which includes its newline.
    pub fn append_line(&mut self, line: &str) -> Result<(), Error> {
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // The first error is reported; an incomplete line that remains is removed at the next start.
                let _ = self.file.set_len(self.length);
                Err(Error::io(&self.directory, &self.path, error))
            }
        }
    }

    /// Syncs the journal to disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|source| Error::io(&self.directory, &self.path, source))
    }
}

/// Returns the complete lines of a directory's journal, including their newlines; empty if there is no journal.
pub fn read_lines(directory: &Path) -> Result<Vec<String>, Error> {
    let path = directory.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(directory, &path, error)),
    }
}

fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = vec![0; (end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(newline) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the current time as RFC 3339 text in UTC, with milliseconds.
pub fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
