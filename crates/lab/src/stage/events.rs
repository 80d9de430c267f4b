//! Events on standard output, from any thread.

use crate::protocol::Event;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Where a host's events go, from any thread.
#[derive(Debug)]
pub struct Outbox {
    writer: Mutex<io::BufWriter<io::Stdout>>,
}

impl Outbox {
    /// Opens standard output.
    pub(crate) fn open() -> Outbox {
        Outbox { writer: Mutex::new(io::BufWriter::with_capacity(1 << 16, io::stdout())) }
    }

    /// Tells an event; it is read soon.
    pub fn tell(&self, event: &Event) {
        self.row(event);
        self.flush();
    }

    /// Tells one of many events: they may wait in a buffer until [`Outbox::tell`] is called.
    pub fn row(&self, event: &Event) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever does not listen any more has closed our standard input too, and that ends us.
        let _ =
            serde_json::to_writer(&mut *writer, event).map_err(io::Error::from).and_then(|()| writer.write_all(b"\n"));
    }

    fn flush(&self) {
        let _ = self.writer.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }
}
