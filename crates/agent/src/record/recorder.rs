//! Takes what the kernel's side hands over, and passes on rows.

use super::assemble::Assembler;
use super::clock::Clock;
use super::event::{Event, Kind, flag};
use super::metrics::Metrics;
use super::observed::Observed;
use super::out::Writer;
use super::unseen::Unseen;
use super::walk::{Walked, Walker};
use libbpf_rs::{MapCore, MapHandle};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use thalweg_trace::RecordRow;

/// The daemon's thread: events in, rows out.
pub struct Recorder {
    /// Makes rows.
    pub assembler: Assembler,
    /// Tells the time.
    pub clock: Clock,
    /// Where rows go.
    pub writer: Writer,
    /// Where they are counted.
    pub metrics: Arc<Metrics>,
    /// What others may look at.
    pub observed: Arc<Observed>,
    /// Connections of whose end the kernel will not tell.
    pub unseen: Unseen,
    /// What the kernel's side keeps of connections.
    pub flows: MapHandle,
}

impl Recorder {
    /// An event, as its bytes. One of another length is from another program: there is none.
    pub fn take_bytes(&mut self, bytes: &[u8]) {
        if let Some(event) = Event::parse(bytes) {
            self.take(&event);
        }
    }

    /// An event.
    pub fn take(&mut self, event: &Event) {
        match event.kind() {
            Some(Kind::Close) => self.unseen.forget(event.connection),
            _ if event.is(flag::BLIND) => self.unseen.take(event),
            _ => {}
        }
        // It has ended before its connection, or with it.
        if let Some(transfer) = event.last_transfer() {
            self.row(&transfer, false);
        }
        if event.kind() != Some(Kind::Look) {
            self.row(event, false);
        }
    }

    fn row(&mut self, event: &Event, is_unseen: bool) {
        let row: RecordRow = self.assembler.row(event, &self.clock, is_unseen);
        self.observed.count_row(row.kind, is_unseen);
        self.metrics.take(&row);
        self.writer.take(&row);
    }

    /// A walk over all open connections begins.
    pub fn begin_walk(&mut self) {
        self.clock.look();
        self.unseen.begin();
    }

    /// A walk has ended: who is not met any more is gone.
    ///
    /// # Errors
    /// If what is kept of connections cannot be gone through.
    pub fn end_walk(&mut self, walked: &Walked, walker: &Walker) -> io::Result<()> {
        // Who was not looked for is not gone.
        if walked.missed == 0 {
            for event in self.unseen.end() {
                self.end(&event);
            }
        }
        let mut gone = Vec::new();
        walker.search(walked, &mut |event| gone.push(event.clone()))?;
        for event in gone {
            self.end(&event);
        }
        Ok(())
    }

    /// A connection has ended, and nobody has told. Unless the kernel did so in this moment.
    fn end(&mut self, event: &Event) {
        if self.flows.delete(&event.connection.to_ne_bytes()).is_ok() {
            self.row(event, true);
        }
    }

    /// Recording ends: a connection that is open has an interim row now.
    pub fn take_last(&mut self, event: &Event) {
        self.row(event, false);
    }

    /// To be called a few times a second.
    pub fn tick(&mut self, now: Instant) {
        self.writer.tick(now);
        self.observed.update(self.writer.health(), self.clock.steps());
    }
}
