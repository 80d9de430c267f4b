//! Events on standard output, from any thread.

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

    /// Writes an event and everything in the buffer.
    pub fn send(&self, event: &HostEvent) {
        self.buffer(event);
        self.flush();
    }

    /// Writes one of many events to a buffer, which [`EventWriter::send`] empties.
    pub fn buffer(&self, event: &HostEvent) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // The write fails if the engine has exited. That also closes standard input, which ends this process.
        let _ =
            serde_json::to_writer(&mut *writer, event).map_err(io::Error::from).and_then(|()| writer.write_all(b"\n"));
    }

    fn flush(&self) {
        let _ = self.writer.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }
}
