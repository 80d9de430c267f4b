//! A run directory that is being written.

use crate::atomic;
use crate::error::Error;
use crate::id::Id;
use crate::journal::Journal;
use crate::layout::{TABLES, programs_folder, recorded_folder, recorded_paths, table_path};
use crate::lock::{self, Lock};
use crate::run_file::{self, RunFile};
use crate::tables::Tables;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use thalweg_plan::plan::SweepValue;

/// Name of the file with the commands that an engine ran on the machine.
pub(crate) const COMMANDS: &str = "commands.log";

/// A run directory, opened for writing exclusively by this process.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    run: RunFile,
    present: BTreeSet<Id>,
    journal: Mutex<Journal>,
    _lock: Lock,
}

impl RunDirectory {
    /// Creates the run directory of `run`, or resumes an existing one.
    ///
    /// Unfinished files of terminated processes are removed.
    ///
    /// # Errors
    /// If the directory belongs to another run or is not a run directory, is being written by another process, or
    /// cannot be written.
    pub fn open(path: &Path, run: RunFile) -> Result<RunDirectory, Error> {
        fs::create_dir_all(path).map_err(|source| Error::io(path, path, source))?;
        // Checked before the lock creates a file, so that a foreign folder stays unchanged.
        refuse_foreign_files(path)?;
        let lock = Lock::take(path)?;
        let run = match RunFile::read(path)? {
            Some(stored) => {
                if let Some((found, expected)) = stored.difference(&run) {
                    return Err(Error::OtherRun { directory: path.to_owned(), found, expected });
                }
                stored
            }
            None => {
                run.write(path)?;
                run
            }
        };
        let present = tidy(path, &run)?;
        let journal = Mutex::new(Journal::open(path)?);
        Ok(RunDirectory { path: path.to_owned(), run, present, journal, _lock: lock })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of `run.json`.
    pub fn run(&self) -> &RunFile {
        &self.run
    }

    /// Whether the experiment was complete when the directory was opened.
    pub fn was_present(&self, id: &Id) -> bool {
        self.present.contains(id)
    }

    /// Starts the tables of an experiment. `unused` are columns that `flows` and `samples` omit.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn begin(&self, id: &Id, sweep: &BTreeMap<String, SweepValue>, unused: &[&str]) -> Result<Tables<'_>, Error> {
        Tables::create(&self.path, id, sweep, unused)
    }

    /// Creates an empty folder for the output of an experiment's programs, and returns its path.
    ///
    /// # Errors
    /// If the folder cannot be created, or that of an earlier attempt cannot be removed.
    pub fn begin_programs(&self, id: &Id) -> Result<PathBuf, Error> {
        let folder = programs_folder(&self.path, id);
        let error = |source| Error::io(&self.path, &folder, source);
        match fs::remove_dir_all(&folder) {
            Err(found) if found.kind() != ErrorKind::NotFound => return Err(error(found)),
            _ => fs::create_dir_all(&folder).map_err(error)?,
        }
        Ok(folder)
    }

    /// Appends an event to the journal.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn note(&self, event: &impl Serialize) -> Result<(), Error> {
        self.journal.lock().expect("no thread panics while it writes the journal").append(event)
    }

    /// Appends lines from another journal.
    pub(crate) fn copy_lines(&self, lines: &[String]) -> Result<(), Error> {
        let mut journal = self.journal.lock().expect("no thread panics while it writes the journal");
        lines.iter().try_for_each(|line| journal.append_line(line))
    }

    /// Appends complete lines to `commands.log`, the log of commands that an engine ran on the machine, with one write.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn log(&self, lines: &str) -> Result<(), Error> {
        let path = self.path.join(COMMANDS);
        let append = || fs::OpenOptions::new().create(true).append(true).open(&path)?.write_all(lines.as_bytes());
        append().map_err(|source| Error::io(&self.path, &path, source))
    }

    /// Syncs the journal to disk.
    ///
    /// # Errors
    /// If the system reports a write error.
    pub fn sync(&self) -> Result<(), Error> {
        self.journal.lock().expect("no thread panics while it writes the journal").sync()
    }
}

/// Returns the experiments of `run` that are complete.
pub(crate) fn present(directory: &Path, run: &RunFile) -> Result<BTreeSet<Id>, Error> {
    let [.., flows] = TABLES;
    let mut present = BTreeSet::new();
    for experiment in &run.experiments {
        let path = table_path(directory, flows, &experiment.id);
        if path.try_exists().map_err(|source| Error::io(directory, &path, source))? {
            present.insert(experiment.id.clone());
        }
    }
    Ok(present)
}

/// Rejects a directory that does not belong to thalweg: it has no run.json, but files other than those that an engine
/// leaves when it fails early.
fn refuse_foreign_files(directory: &Path) -> Result<(), Error> {
    let failed = |source| Error::io(directory, directory, source);
    let mut foreign = None;
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name == run_file::FILE {
            return Ok(());
        }
        if name != lock::FILE && !atomic::is_temporary(&name) {
            foreign.get_or_insert(name);
        }
    }
    foreign.map_or(Ok(()), |file| Err(Error::NotARun { directory: directory.to_owned(), file }))
}

/// Creates the folders of the tables, and removes unfinished files. Returns the complete experiments.
fn tidy(directory: &Path, run: &RunFile) -> Result<BTreeSet<Id>, Error> {
    atomic::remove_temporary(directory).map_err(|source| Error::io(directory, directory, source))?;
    for table in TABLES {
        let folder = directory.join(table);
        fs::create_dir_all(&folder)
            .and_then(|()| atomic::remove_temporary(&folder))
            .map_err(|source| Error::io(directory, &folder, source))?;
    }
    let recorded = recorded_folder(directory);
    if recorded.is_dir() {
        atomic::remove_temporary(&recorded).map_err(|source| Error::io(directory, &recorded, source))?;
    }
    let present = present(directory, run)?;
    for experiment in run.experiments.iter().filter(|experiment| !present.contains(&experiment.id)) {
        let tables = TABLES.map(|table| table_path(directory, table, &experiment.id));
        for path in tables.into_iter().chain(recorded_paths(directory, &experiment.id)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(directory, &path, error)),
                _ => {}
            }
        }
    }
    Ok(present)
}
