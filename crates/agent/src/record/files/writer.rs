//! The daemon's side of the writer.

use super::disk::Disk;
use super::settings::Settings;
use super::waiting::Waiting;
use super::worker::work;
use super::{GROUP_ROWS, Health, Rows, TRANSFER};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use thalweg_store::Problem;
use thalweg_trace::RecordRow;

/// Number of rows that are converted to columns together: few enough for the first-level cache.
const ROWS_AT_ONCE: usize = 16;

/// Writes rows into a folder of records. After [`Writer::open`], disk I/O happens in a separate thread.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    /// Buffers for the rows of connections and of transfers.
    piles: [Pile; 2],
    waiting: Arc<Waiting>,
    worker: Option<JoinHandle<()>>,
    flush: Duration,
    next: Instant,
}

impl Writer {
    /// Opens the folder of records, or creates it.
    ///
    /// # Errors
    /// If [`Disk::open`] fails, or the thread cannot be created.
    pub fn open(settings: Settings) -> Result<Writer, Problem> {
        let (folder, flush) = (settings.folder.clone(), settings.flush);
        let disk = Disk::open(settings)?;
        let waiting = Arc::new(Waiting::default());
        waiting.files(disk.health());
        let shared = Arc::clone(&waiting);
        let worker = Builder::new().name("records".to_owned()).spawn(move || work(disk, &shared)).map_err(|error| {
            Problem::failed("threads", "this process", error, "permission to start another thread", "check ulimit -u")
        })?;
        let next = Instant::now() + flush;
        Ok(Writer { folder, piles: Default::default(), waiting, worker: Some(worker), flush, next })
    }

    /// Adds a row.
    pub fn take(&mut self, row: RecordRow) {
        let pile = &mut self.piles[usize::from(row.kind == TRANSFER)];
        pile.fresh.push(row);
        if pile.fresh.len() < ROWS_AT_ONCE {
            return;
        }
        pile.gather();
        if pile.rows.len() >= GROUP_ROWS {
            pile.hand_over(&self.waiting);
        }
    }

    /// Requests a flush if one is due. To be called regularly.
    pub fn tick(&mut self, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = now + self.flush;
        self.hand_over();
        self.waiting.flush();
    }

    /// Makes the next [`Writer::tick`] request a flush.
    pub fn flush(&mut self, now: Instant) {
        self.next = now;
    }

    /// Returns whether the queue of rows is so long that callers should wait if they can.
    pub fn is_crowded(&self) -> bool {
        self.waiting.is_crowded()
    }

    /// Returns the state of the writer.
    pub fn health(&self) -> Health {
        let mut health = self.waiting.health();
        health.rows_waiting += self.piles.iter().map(Pile::len).sum::<usize>() as u64;
        if self.worker.as_ref().is_none_or(JoinHandle::is_finished) {
            health.trouble =
                Some("the thread that writes records has exited: this is a bug in thalweg-agent".to_owned());
        }
        health
    }

    /// Flushes all rows, and ends the writer thread.
    ///
    /// # Errors
    /// If the remaining rows could not be written.
    pub fn finish(mut self) -> Result<(), Problem> {
        let joined = self.end();
        let Health { rows_waiting, trouble, .. } = self.waiting.health();
        if joined && rows_waiting == 0 {
            return Ok(());
        }
        let why = trouble.unwrap_or_else(|| "the writer thread exited early".to_owned());
        Err(Problem::failed(
            "rows-lost",
            &self.folder.display().to_string(),
            format!("{rows_waiting} rows that could not be written: {why}"),
            "a writable folder for the last rows",
            &format!("free space (df -h '{}'); rows of earlier flushes are complete", self.folder.display()),
        ))
    }

    fn hand_over(&mut self) {
        self.piles.iter_mut().for_each(|pile| pile.hand_over(&self.waiting));
    }

    /// Requests the last flush, and returns whether the thread ended normally.
    fn end(&mut self) -> bool {
        self.hand_over();
        self.waiting.end();
        self.worker.take().is_some_and(|worker| worker.join().is_ok())
    }
}

/// Rows that will form a row group.
#[derive(Debug, Default)]
struct Pile {
    /// Rows that are not yet converted to columns.
    fresh: Vec<RecordRow>,
    rows: Rows,
}

impl Pile {
    fn len(&self) -> usize {
        self.fresh.len() + self.rows.len()
    }

    fn gather(&mut self) {
        self.rows.push_all(&self.fresh);
        self.fresh.clear();
    }

    fn hand_over(&mut self, waiting: &Waiting) {
        self.gather();
        if !self.rows.is_empty() {
            waiting.add(std::mem::replace(&mut self.rows, waiting.blank()));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.end();
        }
    }
}
