//! Events on standard output.

use crate::protocol::HostEvent;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Writes a host's events, from any thread.
#[derive(Debug)]
pub struct EventWriter {
    writer: Mutex<io::BufWriter<io::Stdout>>,
}

impl EventWriter {
    /// Opens standard output.
    pub(crate) fn open() -> EventWriter {
        EventWriter { writer: Mutex::new(io::BufWriter::with_capacity(1 << 16, io::stdout())) }
    }

    /// Writes an event, and empties the buffer.
    pub fn send(&self, event: &HostEvent) {
        self.buffer(event);
        self.flush();
    }

    /// Writes an event to the buffer, which [`EventWriter::send`] empties.
    pub fn buffer(&self, event: &HostEvent) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // The write fails if the engine has exited, which ends this process too.
        let _ =
            serde_json::to_writer(&mut *writer, event).map_err(io::Error::from).and_then(|()| writer.write_all(b"\n"));
    }

    fn flush(&self) {
        let _ = self.writer.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }
}
