//! Writes the capture in a separate thread, which receives the packets in batches.
//!
//! If the disk is too slow, packets are counted instead of written.

use super::Captured;
use super::pcapng::{SNAP_LEN, write_head, write_packet};
use crate::error::Error;
use crate::relay::sys;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use thalweg_units::{Span, Time};

const BATCH: usize = 256;
/// Maximum number of batches that wait for the disk.
const WAITING: usize = 1024;
/// Time after which the next packet also hands over an incomplete batch.
const MAX_WAIT: Span = Span::from_millis(100);

struct Entry {
    packet: Captured,
    head: [u8; SNAP_LEN],
    len: usize,
}

type Batch = Vec<Entry>;

/// The relay's end of the capture.
pub(in crate::relay) struct Recorder {
    path: PathBuf,
    batch: Batch,
    full: SyncSender<Batch>,
    spare: Receiver<Batch>,
    writer: JoinHandle<io::Result<()>>,
    lost: u64,
}

impl Recorder {
    /// Creates the file, for packets of one IP version.
    ///
    /// # Errors
    /// If the file or the thread cannot be created.
    pub fn create(path: &Path, is_ipv6: bool) -> Result<Recorder, Error> {
        let file = File::create(path).map_err(|error| not_written(path, &error))?;
        let (full, to_write) = mpsc::sync_channel(WAITING);
        let (give_back, spare) = mpsc::sync_channel(WAITING);
        let write = move || {
            // A real-time priority is inherited, but only the thread that carries packets needs it.
            let _ = sys::be_ordinary();
            write(file, is_ipv6, &to_write, &give_back)
        };
        let thread = thread::Builder::new().name("capture".to_owned());
        let writer = thread.spawn(write).map_err(|error| not_written(path, &error))?;
        Ok(Recorder { path: path.to_owned(), batch: Vec::with_capacity(BATCH), full, spare, writer, lost: 0 })
    }

    /// Records a packet; `ip` are its bytes.
    pub fn record(&mut self, packet: Captured, ip: &[u8]) {
        let len = ip.len().min(SNAP_LEN);
        let mut head = [0; SNAP_LEN];
        head[..len].copy_from_slice(&ip[..len]);
        let waits_since = self.batch.first().map_or(packet.t, |first: &Entry| first.packet.t);
        self.batch.push(Entry { packet, head, len });
        if self.batch.len() == BATCH || waits_for(waits_since, packet.t) >= MAX_WAIT {
            let next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
            let batch = std::mem::replace(&mut self.batch, next);
            if let Err(TrySendError::Full(mut batch) | TrySendError::Disconnected(mut batch)) =
                self.full.try_send(batch)
            {
                self.lost += batch.len() as u64;
                batch.clear();
                self.batch = batch;
            }
        }
    }

    /// Waits until the packets are written; returns the number of packets that are missing from the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(self) -> Result<u64, Error> {
        let Recorder { path, batch, full, spare, writer, lost } = self;
        // The send fails only if the writer has ended early; it reports the reason.
        let _ = full.send(batch);
        drop((full, spare));
        match writer.join() {
            Ok(written) => written.map_err(|error| not_written(&path, &error)).map(|()| lost),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Returns the time since `since`; zero if `since` is later, because the times of the two directions differ slightly.
fn waits_for(since: Time, now: Time) -> Span {
    Span(now.0.saturating_sub(since.0))
}

fn write(file: File, is_ipv6: bool, batches: &Receiver<Batch>, give_back: &SyncSender<Batch>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut body = Vec::new();
    write_head(&mut out, is_ipv6)?;
    for mut batch in batches {
        for Entry { packet, head, len } in &batch {
            write_packet(&mut out, packet, &head[..*len], &mut body)?;
        }
        batch.clear();
        // The send fails if the pool is closed or full.
        let _ = give_back.try_send(batch);
    }
    out.flush()
}

fn not_written(path: &Path, error: &io::Error) -> Error {
    Error::new(
        "capture-not-written",
        format!("cannot write the capture {}: {error}", path.display()),
        "free disk space, or remove engine.record from the scenario",
    )
}

#[cfg(test)]
mod tests {
    use super::super::{FATES, read};
    use super::*;
    use std::process::Command;
    use thalweg_units::Bytes;

    /// Returns packets with sizes below and above the stored length, more than fit into a batch.
    fn packets() -> Vec<Captured> {
        let packet = |number: u64| Captured {
            is_forward: number % 2 == 0,
            t: Time(number * 5_000_000_123),
            number: number / 2,
            fate: FATES[number as usize % 3],
            size_bytes: Bytes(40 + number),
            backlog_bytes: Bytes(number * 1500),
        };
        (0..600).map(packet).collect()
    }

    fn capture(path: &Path, is_ipv6: bool) {
        let mut recorder = Recorder::create(path, is_ipv6).expect("the folder is writable");
        for packet in packets() {
            let mut ip = vec![0; packet.size_bytes.0 as usize];
            let size = packet.size_bytes.0 as u16;
            if is_ipv6 {
                ip[0] = 0x60;
                ip[4..6].copy_from_slice(&(size - 40).to_be_bytes());
                ip[6..8].copy_from_slice(&[59, 64]);
            } else {
                ip[0] = 0x45;
                ip[2..4].copy_from_slice(&size.to_be_bytes());
                ip[8..10].copy_from_slice(&[64, 17]);
            }
            recorder.record(packet, &ip);
        }
        assert_eq!(recorder.finish(), Ok(0));
    }

    #[test]
    fn recorded_packets_are_read_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("packets.pcapng");
        capture(&path, false);
        let mut captured = Vec::new();
        read(&path, &mut |packet| captured.push(packet)).expect("it is a capture");
        assert_eq!(captured, packets());
    }

    #[test]
    fn tcpdump_reads_every_packet_with_its_size_and_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("packets.pcapng");
        for (is_ipv6, begin) in [(false, "10.000000246 IP "), (true, "10.000000246 IP6 ")] {
            capture(&path, is_ipv6);
            let Ok(output) = Command::new("tcpdump").args(["-nn", "-tt", "--nano", "-r"]).arg(&path).output() else {
                assert!(std::env::var_os("THALWEG_CI").is_none(), "tcpdump is not installed");
                eprintln!("cannot run: tcpdump is not installed");
                return;
            };
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(text.lines().count(), packets().len());
            assert!(text.lines().nth(2).is_some_and(|line| line.starts_with(begin)), "{text:.400}");
        }
    }

    #[test]
    fn a_missing_directory_is_reported() {
        let error = Recorder::create(Path::new("/nonexistent/packets.pcapng"), false).err().expect("it cannot be made");
        assert_eq!(error.code, "capture-not-written");
    }

    #[test]
    fn packets_that_do_not_fit_on_a_full_disk_are_an_error() {
        let mut recorder = Recorder::create(Path::new("/dev/full"), false).expect("it can be opened");
        for packet in packets().iter().cycle().take(20_000) {
            recorder.record(*packet, &[0x45; 200]);
        }
        assert_eq!(recorder.finish().err().map(|error| error.code), Some("capture-not-written".to_owned()));
    }
}
