//! Scans the open connections, and searches the table of the BPF programs for those that scans no longer find.

use super::program::Program;
use super::record_event::RecordEvent;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};
use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use thalweg_store::Problem;

/// Purpose of a scan, as numbered in bpf/flow/record.bpf.c.
const SHOWS_ALL: u32 = 1;

const BUFFER_BYTES: usize = 1 << 16;

/// Maximum number of searches of the table after a scan, and the pause between them.
const SEARCHES: usize = 20;
const BETWEEN_SEARCHES: Duration = Duration::from_millis(250);

/// Scans the connections of all network namespaces.
pub struct Scanner {
    program: Arc<Program>,
    iterator: Link,
    /// Locked during a scan: the programs can serve only one scan at a time.
    maps: Mutex<ScanMaps>,
}

/// The latest scan, and the maps of the BPF programs that describe it.
struct ScanMaps {
    /// Contains `struct scan` of record.bpf.c.
    scan: MapHandle,
    number: u32,
    cgroup: u64,
    /// Contains the network namespaces that the scan has visited.
    namespaces: MapHandle,
}

impl ScanMaps {
    fn publish(&self, purpose: u32, is_complete: bool) -> io::Result<()> {
        let words = [purpose, self.number, u32::from(is_complete), 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).chain(self.cgroup.to_ne_bytes()).collect();
        self.scan.update(&0u32.to_ne_bytes(), &bytes, MapFlags::ANY).map_err(io::Error::other)
    }

    fn publish_visited(&self, scanned: &Scanned) {
        for namespace in &scanned.seen {
            // If the map is full, closed connections of this namespace may stay unreported.
            let _ = self.namespaces.update(&namespace.to_ne_bytes(), &self.number.to_ne_bytes(), MapFlags::ANY);
        }
        let is_seen = |key: &Vec<u8>| scanned.seen.iter().any(|netns| key[..] == netns.to_ne_bytes());
        let others: Vec<Vec<u8>> = self.namespaces.keys().filter(|key| !is_seen(key)).collect();
        for other in others {
            let _ = self.namespaces.delete(&other);
        }
    }
}

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Network namespaces that were scanned.
    pub seen: HashSet<u32>,
    /// Number of network namespaces that were found, but could not be entered or not be read completely.
    pub missed: usize,
    /// Number of processes whose network namespace could not be read, and may have been missed.
    pub hidden: usize,
}

impl Scanned {
    /// Whether no network namespace was missed, as far as known.
    fn is_complete(&self) -> bool {
        self.missed == 0 && self.hidden == 0
    }
}

impl Scanner {
    /// Returns a scanner that uses these programs and joins connections of the cgroup with this id.
    ///
    /// # Errors
    /// If the kernel does not support the iterator, or the limit of file descriptors is reached.
    pub fn new(program: Arc<Program>, cgroup: u64) -> Result<Scanner, Problem> {
        let maps = ScanMaps { scan: program.map("scan")?, number: 0, cgroup, namespaces: program.map("namespaces")? };
        let iterator = program.scan()?;
        Ok(Scanner { program, iterator, maps: Mutex::new(maps) })
    }

    /// Sets the cgroup whose connections later scans join.
    pub fn set_cgroup(&self, number: u64) {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner).cgroup = number;
    }

    /// Scans the connections of all network namespaces, and joins those that are to be recorded but are not yet in the
    /// table. `take` receives the recorded ones whose interim row is due, and those that only scans observe. With
    /// `shows_all`, `take` receives all recorded open connections, and the table is not searched for closed ones.
    ///
    /// # Errors
    /// If the agent's own network namespace cannot be scanned, or the table cannot be searched.
    pub fn scan(&self, shows_all: bool, take: &mut (dyn FnMut(&RecordEvent) + Send)) -> io::Result<Scanned> {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        maps.number = maps.number.wrapping_add(1).max(1);
        maps.publish(if shows_all { SHOWS_ALL } else { 0 }, false)?;
        // A separate thread enters the namespaces, so that the other threads stay in theirs.
        let scanned = thread::scope(|scope| {
            let thread = thread::Builder::new().name("scan".to_owned()).spawn_scoped(scope, || self.scan_all(take))?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the scan thread panicked")))
        })?;
        if !shows_all {
            maps.publish_visited(&scanned);
            maps.publish(0, scanned.is_complete())?;
            self.search()?;
        }
        Ok(scanned)
    }

    /// Searches the table for closed connections, repeatedly while the event queue is too small for their events.
    fn search(&self) -> io::Result<()> {
        for _ in 0..SEARCHES {
            if self.program.search()? == 0 {
                break;
            }
            thread::sleep(BETWEEN_SEARCHES);
        }
        Ok(())
    }

    fn scan_all(&self, take: &mut dyn FnMut(&RecordEvent)) -> io::Result<Scanned> {
        let mut scanned = Scanned::default();
        read(&self.iterator, take)?;
        scanned.seen.extend(thalweg_netns::own().ok().and_then(|number| u32::try_from(number).ok()));
        let others = thalweg_netns::others();
        scanned.hidden = others.hidden;
        for namespace in others.found {
            match namespace.enter().and_then(|()| read(&self.iterator, take)) {
                Ok(()) => scanned.seen.extend(u32::try_from(namespace.number())),
                Err(_) => scanned.missed += 1,
            }
        }
        Ok(scanned)
    }
}

/// Reads the events of the iterator over connections, which covers the network namespace of this thread.
fn read(link: &Link, take: &mut dyn FnMut(&RecordEvent)) -> io::Result<()> {
    let mut iter = Iter::new(link).map_err(io::Error::other)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    loop {
        match iter.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(()),
            Ok(count) => filled += count,
            // The kernel interrupts the read after a large number of entries without output.
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
            Err(error) => return Err(error),
        }
        let complete = filled - filled % RecordEvent::BYTES;
        buffer[..complete]
            .chunks_exact(RecordEvent::BYTES)
            .filter_map(RecordEvent::parse)
            .for_each(|event| take(&event));
        buffer.copy_within(complete..filled, 0);
        filled -= complete;
    }
}
