//! The daemon's main loop.

use super::attachment::Attachment;
use super::recorder::Recorder;
use crate::flow::event_queue::EventQueue;
use crate::flow::record_event::RecordEvent;
use crate::flow::scan::{Scanned, Scanner};
use crate::flow::wakeup::Wakeup;
use crate::log;
use crate::signals::Signals;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use thalweg_store::Problem;

const TICK: Duration = Duration::from_millis(200);

/// Number of scans per interim interval. A connection's interim row may be late by the interval between scans.
const SCANS_PER_INTERIM: u32 = 4;

const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Number of scanned samples per batch, and maximum number of batches in the channel.
const BATCH: usize = 256;
const BATCHES: usize = 4;

/// Maximum total time that a scan waits for the disk, and the length of one wait.
const MAX_WAIT: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(5);

/// The main loop of the daemon.
pub struct Rounds<'a> {
    recorder: &'a RefCell<Recorder>,
    events: RefCell<EventQueue>,
    waker: RingBuffer<'a>,
    scanner: &'a Scanner,
    wakeup: &'a Wakeup,
    /// Becomes readable when many events are queued, a client sends a request, or a folder is created in a folder above
    /// the cgroup.
    waiting: OwnedFd,
}

impl<'a> Rounds<'a> {
    /// Creates the loop.
    ///
    /// # Errors
    /// If the limit of file descriptors is reached.
    pub fn new(
        recorder: &'a RefCell<Recorder>,
        events: EventQueue,
        waker: &'a MapHandle,
        scanner: &'a Scanner,
        wakeup: &'a Wakeup,
        changes: Option<BorrowedFd<'_>>,
    ) -> Result<Rounds<'a>, Problem> {
        let mut ring = RingBufferBuilder::new();
        // The content of the wakeup is irrelevant.
        ring.add(waker, |_| 0).map_err(unreadable)?;
        let files: Vec<BorrowedFd<'_>> = [waker.as_fd(), wakeup.as_fd()].into_iter().chain(changes).collect();
        let waiting = wakes_for(&files).map_err(unreadable)?;
        let waker = ring.build().map_err(unreadable)?;
        Ok(Rounds { recorder, events: RefCell::new(events), waker, scanner, wakeup, waiting })
    }

    /// Runs until a signal ends it. Scans several times per `interim`, and at least every `flush` if connections are
    /// observed only by scans. Calls `reload` after SIGHUP.
    ///
    /// # Errors
    /// If the kernel's events cannot be read.
    pub fn run(
        &self,
        interim: Duration,
        flush: Duration,
        attachment: &mut Attachment<'_>,
        signals: &Signals,
        reload: &dyn Fn(&mut Recorder),
    ) -> Result<(), Problem> {
        let usual = (interim / SCANS_PER_INTERIM).max(MIN_SCAN_INTERVAL);
        let mut scanned = Instant::now();
        self.wakeup.set_serving(true);
        while !signals.is_over() {
            self.wait()?;
            self.fetch()?;
            if signals.wants_reload() {
                reload(&mut self.recorder.borrow_mut());
            }
            let is_new = attachment.check(&mut *self.recorder.borrow_mut().extension);
            let interval = if self.recorder.borrow().untracked.is_empty() { usual } else { usual.min(flush) };
            if is_new || scanned.elapsed() >= interval {
                scanned = Instant::now();
                if let Err(error) = self.scan()? {
                    log::warning(&format!("open connections could not be scanned: {error}"));
                }
            }
        }
        self.wakeup.set_serving(false);
        Ok(())
    }

    /// Fetches the queued events, and updates the state for clients.
    ///
    /// # Errors
    /// If the wakeups cannot be read.
    pub fn fetch(&self) -> Result<(), Problem> {
        let requested = self.wakeup.requested();
        // Consumed before the events, so that an event that arrives during `take` can send another wakeup.
        self.waker.consume().map_err(unreadable)?;
        let mut recorder = self.recorder.borrow_mut();
        recorder.clock.update();
        self.events.borrow_mut().take(&mut |event| recorder.take(event));
        recorder.tick(Instant::now());
        self.wakeup.answer(requested);
        Ok(())
    }

    /// Scans all open connections, and writes the interim rows that are due. The inner result is that of the scan.
    ///
    /// # Errors
    /// If the kernel's events cannot be read meanwhile.
    pub fn scan(&self) -> Result<io::Result<Scanned>, Problem> {
        self.recorder.borrow_mut().begin_scan();
        self.go(false, &mut |recorder, event| recorder.take(event))
    }

    /// Like [`Rounds::scan`], but writes an interim row for each recorded open connection.
    pub fn scan_last(&self) -> Result<io::Result<Scanned>, Problem> {
        self.go(true, &mut |recorder, event| recorder.take_last(event))
    }

    /// Passes the samples of a scan to the recorder. Fetches events meanwhile, because the event queue can fill during
    /// a scan. Pauses while many rows wait for the disk, for at most `MAX_WAIT` in total.
    fn go(
        &self,
        shows_all: bool,
        take: &mut dyn FnMut(&mut Recorder, &RecordEvent),
    ) -> Result<io::Result<Scanned>, Problem> {
        let (sender, batches) = sync_channel::<Vec<RecordEvent>>(BATCHES);
        let (scanner, patient_until) = (self.scanner, Instant::now() + MAX_WAIT);
        // The closure owns the receiver: when it returns early, the scan's sends fail instead of blocking.
        thread::scope(move |scope| {
            let thread = thread::Builder::new().name("batches".to_owned()).spawn_scoped(scope, move || {
                let mut batch = Vec::with_capacity(BATCH);
                let scanned = scanner.scan(shows_all, &mut |event| {
                    batch.push(event.clone());
                    if batch.len() == BATCH {
                        let _ = sender.send(std::mem::take(&mut batch));
                    }
                });
                let _ = sender.send(batch);
                scanned
            });
            let thread = match thread {
                Ok(thread) => thread,
                Err(error) => return Ok(Err(error)),
            };
            loop {
                match batches.recv_timeout(TICK) {
                    Ok(batch) => {
                        let mut recorder = self.recorder.borrow_mut();
                        batch.iter().for_each(|event| take(&mut recorder, event));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                self.fetch()?;
                while self.recorder.borrow().is_crowded() && Instant::now() < patient_until {
                    thread::sleep(MOMENT);
                    self.fetch()?;
                }
            }
            Ok(thread.join().unwrap_or_else(|_| Err(io::Error::other("the scan thread panicked"))))
        })
    }

    fn wait(&self) -> Result<(), Problem> {
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        match epoll::wait(&self.waiting, spare_capacity(&mut Vec::with_capacity(3)), Some(&time)) {
            Err(error) if error != Errno::INTR => Err(unreadable(error)),
            _ => Ok(()),
        }
    }
}

fn wakes_for(files: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
    let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for file in files {
        epoll::add(&waiting, file, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(waiting)
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::failed(
        "ring-buffer",
        "the BPF programs",
        error,
        "wakeups from them",
        "report it with the output of `uname -r`",
    )
}
