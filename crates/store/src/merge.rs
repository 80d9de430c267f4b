//! Merges run directories of one plan, such as shards that several machines ran.

use crate::atomic::Pending;
use crate::directory::{self, COMMANDS, RunDirectory};
use crate::error::Error;
use crate::id::Id;
use crate::journal;
use crate::layout::{TABLES, programs_folder, recorded_folder, recorded_paths, table_path};
use crate::publish::publish;
use crate::run_file::{FILE, Host, RunFile};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Result of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Number of experiments in the plan.
    pub experiments: usize,
    /// Number of experiments that this merge copied.
    pub copied: usize,
    /// Number of experiments that `out` already contained.
    pub present: usize,
    /// Number of experiments that none of the directories contains.
    pub missing: usize,
}

#[derive(Debug, Serialize)]
struct Note<'a> {
    event: &'static str,
    experiments: usize,
    created: &'a str,
    host: &'a Host,
}

/// Merges the run directories `parts` into `out`, which is created if missing. Experiments in `out` are kept; if
/// several parts contain an experiment, the first one is used. Lines of the parts' journals that `out` lacks are
/// appended, and the logged commands of parts from which experiments are copied.
///
/// # Errors
/// If the directories are not of the same plan, engine and version, or cannot be read or written.
///
/// # Panics
/// If `parts` is empty.
pub fn merge(
    out: &Path,
    parts: &[PathBuf],
    engine_version: &str,
    host: Host,
    command: Option<Vec<String>>,
) -> Result<Merged, Error> {
    let runs = parts.iter().map(|part| read_part(part)).collect::<Result<Vec<_>, _>>()?;
    let first = runs.first().expect("there is something to merge");
    for (run, part) in runs.iter().zip(parts) {
        if let Some((found, expected)) = run.difference(first) {
            return Err(Error::OtherPart { directory: part.clone(), found, expected });
        }
    }
    let joined = RunFile::new(first.plan.clone(), engine_version, &first.result_version, host, command);
    let target = RunDirectory::open(out, joined)?;
    let mut complete = directory::present(out, first)?;
    let present = complete.len();
    target.copy_lines(&new_lines(out, parts)?)?;
    for (part, run) in parts.iter().zip(&runs) {
        let share: Vec<Id> = directory::present(part, run)?.difference(&complete).cloned().collect();
        share.iter().try_for_each(|id| copy(&target, part, id))?;
        if !share.is_empty() {
            copy_commands(&target, part)?;
            target.note(&Note { event: "merged", experiments: share.len(), created: &run.created, host: &run.host })?;
        }
        complete.extend(share);
    }
    target.sync()?;
    let experiments = first.experiments.len();
    Ok(Merged { experiments, copied: complete.len() - present, present, missing: experiments - complete.len() })
}

fn read_part(part: &Path) -> Result<RunFile, Error> {
    RunFile::read(part)?.ok_or_else(|| Error::BadRunFile {
        file: part.join(FILE),
        why: "no such file: this is not a run directory".to_owned(),
    })
}

fn copy(target: &RunDirectory, part: &Path, id: &Id) -> Result<(), Error> {
    let copy = |(from, to): (PathBuf, PathBuf)| {
        let mut from = File::open(&from).map_err(|source| Error::io(part, &from, source))?;
        let mut write = || {
            let mut file = Pending::create(&to)?;
            io::copy(&mut from, file.file())?;
            file.sync()?;
            Ok(file)
        };
        write().map_err(|source| Error::io(target.path(), &to, source))
    };
    let recorded = std::iter::zip(recorded_paths(part, id), recorded_paths(target.path(), id));
    let recorded: Vec<_> = recorded.filter(|(from, _)| from.exists()).collect();
    if !recorded.is_empty() {
        let folder = recorded_folder(target.path());
        fs::create_dir_all(&folder).map_err(|source| Error::io(target.path(), &folder, source))?;
    }
    let [from, to] = [part, target.path()].map(|directory| programs_folder(directory, id));
    if from.exists() {
        copy_folder(&from, &to).map_err(|source| Error::io(target.path(), &to, source))?;
    }
    let tables = TABLES.map(|table| (table_path(part, table, id), table_path(target.path(), table, id)));
    let files: Vec<Pending> = recorded.into_iter().chain(tables).map(copy).collect::<Result<_, _>>()?;
    publish(target.path(), id, files)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Appends the commands that the engine ran on the part's machine, unless they are already present.
fn copy_commands(target: &RunDirectory, part: &Path) -> Result<(), Error> {
    let read = |directory: &Path| {
        let path = directory.join(COMMANDS);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|source| Error::io(directory, &path, source)),
        }
    };
    let commands = read(part)?;
    if commands.is_empty() || read(target.path())?.contains(&commands) { Ok(()) } else { target.log(&commands) }
}

/// Returns the lines of the parts' journals that `out` lacks. Every line begins with its time, in a form that sorts as
/// text; lines with the same time stay in the order of the parts.
fn new_lines(out: &Path, parts: &[PathBuf]) -> Result<Vec<String>, Error> {
    let mut lines_so_far: BTreeSet<String> = journal::read_lines(out)?.into_iter().collect();
    let mut lines = Vec::new();
    for part in parts {
        lines.extend(journal::read_lines(part)?.into_iter().filter(|line| lines_so_far.insert(line.clone())));
    }
    lines.sort_by(|a, b| time_of(a).cmp(time_of(b)));
    Ok(lines)
}

/// Returns the time of a journal line: `2026-01-31T12:00:00.000Z` for `{"at":"2026-01-31T12:00:00.000Z",...`.
fn time_of(line: &str) -> &str {
    line.split('"').nth(3).unwrap_or_default()
}
