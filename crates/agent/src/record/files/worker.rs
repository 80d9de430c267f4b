//! The writer thread: flushes rows when they are due, and merges files.

use super::Rows;
use super::disk::Disk;
use super::merge::merge;
use super::waiting::Waiting;
use crate::log;
use std::time::SystemTime;

/// nice(2) value of this thread, so that the server's own work has priority.
const NICE: i32 = 10;

/// Writes until the queue is closed.
pub fn work(mut disk: Disk, waiting: &Waiting) {
    // On an error, the thread keeps its priority.
    let _ = rustix::process::nice(NICE);
    loop {
        let (rows, is_last) = waiting.wait();
        let mut outcome = flush(&mut disk, waiting, rows);
        if !is_last {
            outcome = outcome.and_then(|()| look_after(&mut disk, waiting));
        }
        report(&disk, waiting, outcome.err());
        if is_last {
            return;
        }
    }
}

fn flush(disk: &mut Disk, waiting: &Waiting, rows: Vec<Rows>) -> Result<(), String> {
    let outcome = disk.write(&rows, SystemTime::now());
    match outcome {
        Ok(()) => {
            waiting.files(disk.health());
            waiting.written(rows);
        }
        Err(_) => waiting.give_back(rows),
    }
    outcome
}

/// Merges and removes the files that are due. Flushes continue during a merge, which may take long.
fn look_after(disk: &mut Disk, waiting: &Waiting) -> Result<(), String> {
    let folder = disk.folder().to_owned();
    for parts in disk.due(SystemTime::now())? {
        let outcome = merge(&folder, &parts, &mut || {
            if let Some(rows) = waiting.take_due() {
                // If this fails, the rows stay queued, and the next flush reports the error.
                let _ = flush(disk, waiting, rows);
            }
            !waiting.is_ending()
        });
        disk.merged(&parts, outcome)?;
    }
    Ok(())
}

/// Publishes the writer's state, and logs changes of its problem.
fn report(disk: &Disk, waiting: &Waiting, trouble: Option<String>) {
    waiting.files(disk.health());
    let before = waiting.trouble(trouble.clone());
    match (before, trouble) {
        (before, Some(now)) if before.as_ref() != Some(&now) => log::error(&format!("records: {now}")),
        (Some(_), None) => {
            let (folder, lost) = (disk.folder().display(), waiting.health().rows_lost);
            log::warning(&format!("records: {folder}: records are written and merged again; rows lost so far: {lost}"));
        }
        _ => {}
    }
}
