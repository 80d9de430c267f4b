//! Queue of rows between the daemon's thread and the writer thread.

use super::{GROUP_ROWS, Health, Rows};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Maximum number of queued rows, which limits the memory if the disk rejects writes.
pub const MAX_ROWS: usize = 8 * GROUP_ROWS;

/// Number of rows at which a flush begins before it is due.
const EARLY_ROWS: usize = 2 * GROUP_ROWS;

const MAX_SPARE: usize = 4;

/// Queued rows, and the state of the writer.
#[derive(Debug, Default)]
pub struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Queued rows, the oldest first.
    rows: VecDeque<Rows>,
    /// Empty buffers with capacity.
    spare: Vec<Rows>,
    /// Number of rows that the writer thread holds.
    in_hand: u64,
    is_due: bool,
    is_ending: bool,
    health: Health,
}

impl Waiting {
    /// Adds rows. Above the limit, the oldest rows are dropped.
    pub fn add(&self, rows: Rows) {
        let mut state = self.state();
        state.rows.push_back(rows);
        state.drop_oldest();
        if state.count() >= EARLY_ROWS {
            state.is_due = true;
            self.changed.notify_one();
        }
    }

    /// Requests a flush.
    pub fn flush(&self) {
        self.state().is_due = true;
        self.changed.notify_one();
    }

    /// Requests the last flush, and closes the queue.
    pub fn end(&self) {
        self.state().is_ending = true;
        self.changed.notify_one();
    }

    /// Returns whether [`Waiting::end`] was called.
    pub fn is_ending(&self) -> bool {
        self.state().is_ending
    }

    /// Waits until a flush is due, and returns its rows, and whether it is the last flush.
    pub fn wait(&self) -> (Vec<Rows>, bool) {
        let state = self.state();
        let waited = self.changed.wait_while(state, |state| !state.is_due && !state.is_ending);
        let mut state = waited.expect("no thread panics with the lock");
        (state.take(), state.is_ending)
    }

    /// Returns the rows if a flush is due.
    pub fn take_due(&self) -> Option<Vec<Rows>> {
        let mut state = self.state();
        state.is_due.then(|| state.take())
    }

    /// Reports that the rows that the writer thread held are in a file.
    pub fn written(&self, rows: Vec<Rows>) {
        let mut state = self.state();
        state.health.rows_written += state.in_hand;
        state.in_hand = 0;
        for mut rows in rows {
            if state.spare.len() < MAX_SPARE {
                rows.clear();
                state.spare.push(rows);
            }
        }
    }

    /// Returns an empty buffer, with capacity if one was kept.
    pub fn blank(&self) -> Rows {
        self.state().spare.pop().unwrap_or_default()
    }

    /// Returns rows to the queue that could not be written.
    pub fn give_back(&self, rows: Vec<Rows>) {
        let mut state = self.state();
        rows.into_iter().rev().for_each(|rows| state.rows.push_front(rows));
        state.in_hand = 0;
        state.drop_oldest();
    }

    /// Updates the state of the files.
    pub fn files(&self, files: &Health) {
        let mut state = self.state();
        let Health { rows_written, rows_lost, .. } = state.health;
        let trouble = state.health.trouble.take();
        state.health = Health { rows_written, rows_lost, trouble, ..files.clone() };
    }

    /// Sets the current problem, and returns the previous one.
    pub fn trouble(&self, trouble: Option<String>) -> Option<String> {
        std::mem::replace(&mut self.state().health.trouble, trouble)
    }

    /// Returns whether at least `EARLY_ROWS` rows are in memory; false while the writer has a problem, because waiting
    /// would not help.
    pub fn is_crowded(&self) -> bool {
        let state = self.state();
        state.health.trouble.is_none() && state.count() as u64 + state.in_hand >= EARLY_ROWS as u64
    }

    /// Returns the state of the writer.
    pub fn health(&self) -> Health {
        let state = self.state();
        Health { rows_waiting: state.count() as u64 + state.in_hand, ..state.health.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }
}

impl State {
    fn count(&self) -> usize {
        self.rows.iter().map(Rows::len).sum()
    }

    fn take(&mut self) -> Vec<Rows> {
        self.in_hand = self.count() as u64;
        self.is_due = false;
        std::mem::take(&mut self.rows).into()
    }

    fn drop_oldest(&mut self) {
        while self.count() > MAX_ROWS {
            let oldest = self.rows.pop_front().map_or(0, |rows| rows.len());
            self.health.rows_lost += oldest as u64;
        }
    }
}
