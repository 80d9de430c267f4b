//! State of the writer of records.

/// State of the writer. Numbers count from the start of the agent unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Rows that are in memory now.
    pub rows_waiting: u64,
    /// Rows that were written to complete files.
    pub rows_written: u64,
    /// Rows that were dropped because the queue was full.
    pub rows_lost: u64,
    /// Files written by flushes.
    pub files_written: u64,
    /// Files that were merged into a larger one.
    pub files_merged: u64,
    /// Files removed because of --max-size.
    pub files_removed: u64,
    /// Files of records in the folder now.
    pub files: u64,
    /// Total size of these files in bytes.
    pub bytes: u64,
    /// The current problem.
    pub trouble: Option<String>,
}
