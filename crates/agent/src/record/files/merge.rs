//! Merges several record files into one.
//!
//! 1. The merged file is written under a temporary name and synced.
//! 2. It is renamed, atomically, to a name that spans the flush numbers of its parts, which readers then skip.
//! 3. The folder is synced, so that a power failure cannot undo the rename after step 4.
//! 4. The parts are removed. Parts that remain after a kill are removed at the next start.
//!
//! Row groups that already have the intended size are copied, which is faster. Small ones are decoded and combined.

use super::folder::{self, Name};
use super::{GROUP_ROWS, Rows, TRANSFER};
use std::io::{self, ErrorKind};
use std::path::Path;
use thalweg_store::{RowsFile, StoredRows};
use thalweg_trace::RecordRow;

/// Why files were not merged.
#[derive(Debug)]
pub enum Failure {
    /// A file cannot be read.
    Unreadable(Name, io::Error),
    /// The merged file cannot be written, or its parts cannot be removed.
    Write(io::Error),
    /// The merge was cancelled.
    GivenUp,
}

/// Merges files of a folder. `may_go_on` is called repeatedly; if it returns false, the merge is cancelled.
pub fn merge(folder: &Path, parts: &[Name], may_go_on: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
    let name = Name { first: first.first, last: last.last, at_s: first.at_s };
    // Small row groups, of connections and of transfers.
    let mut small: [Rows; 2] = Default::default();
    let mut file = RowsFile::create(&folder.join(name.text()), &small[0]).map_err(Failure::Write)?;
    let mut is_empty = true;
    for &part in parts {
        let unreadable = |error| Failure::Unreadable(part, error);
        let stored = match StoredRows::<RecordRow>::open(&folder.join(part.text())) {
            // The file was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            stored => stored.map_err(unreadable)?,
        };
        is_empty = false;
        for group in 0..stored.groups() {
            let rows = &mut small[usize::from(stored.all_have(group, "kind", TRANSFER))];
            // A large group is copied only if no rows are pending, so that rows stay in order.
            if rows.is_empty() && stored.rows(group) >= GROUP_ROWS {
                stored.check(group).map_err(unreadable)?;
                file.copy(&stored, group).map_err(Failure::Write)?;
            } else {
                stored.read(group, rows).map_err(unreadable)?;
            }
            if rows.len() >= GROUP_ROWS {
                write(&mut file, rows)?;
            }
            if !may_go_on() {
                return Err(Failure::GivenUp);
            }
        }
    }
    if is_empty {
        return Ok(());
    }
    small.iter_mut().filter(|rows| !rows.is_empty()).try_for_each(|rows| write(&mut file, rows))?;
    file.finish().and_then(|file| file.publish()).map_err(Failure::Write)?;
    folder::sync(folder).map_err(Failure::Write)?;
    parts.iter().try_for_each(|&part| folder::remove(folder, part)).map_err(Failure::Write)
}

fn write(file: &mut RowsFile<RecordRow>, rows: &mut Rows) -> Result<(), Failure> {
    // Replaced by new buffers, because cleared ones would keep texts.
    file.write(&std::mem::take(rows)).map_err(Failure::Write)
}
