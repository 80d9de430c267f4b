//! Converts the events of the BPF programs to rows.

use super::detail::Detail;
use super::extension::Extension;
use super::files::{Health, Writer};
use super::row::RowBuilder;
use crate::flow::clock::Clock;
use crate::flow::off_cpu::OffCpu;
use crate::flow::record_event::{Kind, RecordEvent, flag};
use crate::flow::untracked::Untracked;
use crate::show::observed::Observed;
use crate::show::snapshot;
use crate::show::tally::Tally;
use std::sync::Arc;
use std::time::Instant;

/// State of the daemon's thread.
pub struct Recorder {
    /// Converts events to rows.
    pub row_builder: RowBuilder,
    /// Level of detail of rows.
    pub detail: Detail,
    /// Converts timestamps.
    pub clock: Clock,
    /// Destination of rows; `None` if rows are not written.
    pub writer: Option<Writer>,
    /// Counters of rows.
    pub tally: Tally,
    /// State for clients.
    pub observed: Arc<Observed>,
    /// Connections whose close the kernel does not report.
    pub untracked: Untracked,
    /// Extension of the recorder, such as `tune`.
    pub extension: Box<dyn Extension>,
    /// Record of off-CPU time.
    pub off_cpu: Arc<OffCpu>,
}

impl Recorder {
    /// Handles an event.
    pub fn take(&mut self, event: &RecordEvent) {
        match event.kind() {
            // A scan's last sample, if any, is more recent than the state in the event.
            Some(Kind::Gone) => {
                let last = self.untracked.remove(event.connection);
                let last = last.as_ref().unwrap_or(event);
                self.extension.take(last, &self.off_cpu);
                return self.row(last, true);
            }
            Some(Kind::Close) => {
                self.untracked.remove(event.connection);
                self.extension.take(event, &self.off_cpu);
            }
            _ if event.is(flag::BLIND) => self.untracked.take(event),
            _ => {}
        }
        if let Some(transfer) = event.last_transfer() {
            self.row(&transfer, false);
        }
        if event.kind() != Some(Kind::Snapshot) {
            self.row(event, false);
        }
    }

    fn row(&mut self, event: &RecordEvent, is_unseen: bool) {
        let mut row = self.row_builder.row(event, &self.clock, is_unseen);
        self.observed.count_row(row.kind);
        self.tally.take(&row);
        if let Some(writer) = &mut self.writer {
            self.detail.reduce(&mut row);
            writer.take(row);
        }
    }

    /// Makes the next tick flush the queued rows.
    pub fn flush(&mut self, now: Instant) {
        if let Some(writer) = &mut self.writer {
            writer.flush(now);
        }
    }

    /// Returns whether the queue of rows is so long that callers should wait if they can.
    pub fn is_crowded(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::is_crowded)
    }

    /// Called when a scan for interim rows begins.
    pub fn begin_scan(&mut self) {
        self.clock.update();
    }

    /// Handles the last sample of an open connection, when recording ends.
    pub fn take_last(&mut self, event: &RecordEvent) {
        self.row(event, false);
    }

    /// Publishes counters and state, and lets the writer flush rows that are due.
    pub fn tick(&mut self, now: Instant) {
        self.tally.publish();
        self.extension.tick(&self.off_cpu);
        if let Some(writer) = &mut self.writer {
            writer.tick(now);
        }
        let health = self.writer.as_ref().map(Writer::health).unwrap_or_default();
        self.observed.update(writer_status(health), self.clock.steps());
    }
}

fn writer_status(health: Health) -> snapshot::Writer {
    snapshot::Writer {
        rows_written: health.rows_written,
        rows_waiting: health.rows_waiting,
        rows_lost: health.rows_lost,
        files: health.files,
        bytes: health.bytes,
        files_removed: health.files_removed,
        trouble: health.trouble,
    }
}
