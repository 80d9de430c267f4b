//! Walks over all open connections: to join those that were open before recording began, to make interim rows, and to show them.

use super::event::Event;
use super::namespaces;
use super::program::Program;
use crate::problem::Problem;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};
use std::io::{self, ErrorKind, Read};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What a walk is for: as bpf/flow/record.bpf.c numbers it.
const SHOWS_ALL: u64 = 1;

/// As much as the kernel fills at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Walks.
pub struct Walker {
    link: Link,
    /// One walk at a time: what it is for is told to all programs.
    purpose: Mutex<MapHandle>,
}

/// How a walk went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Network namespaces that could not be entered, or not be read to the end.
    pub missed: usize,
}

impl Walker {
    /// A walker with these programs.
    ///
    /// # Errors
    /// If the kernel has no iterator.
    pub fn new(program: &Program) -> Result<Walker, Problem> {
        Ok(Walker { link: program.walk()?, purpose: Mutex::new(program.map("walk")?) })
    }

    /// Goes over the connections of all network namespaces. Those that are new are joined; those for which it is time, and
    /// those of which only walks tell, are handed over; with `shows_all` all are.
    ///
    /// # Errors
    /// If not even those of the own namespace can be seen.
    pub fn walk(&self, shows_all: bool, take: &mut (dyn FnMut(&Event) + Send)) -> io::Result<Walked> {
        let purpose = self.purpose.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = if shows_all { SHOWS_ALL } else { 0 };
        purpose.update(&0u32.to_ne_bytes(), &bits.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        // A thread of its own, so that the others stay where they are.
        thread::scope(|scope| {
            let walk = thread::Builder::new().name("walk".to_owned()).spawn_scoped(scope, || self.walk_all(take))?;
            walk.join().unwrap_or_else(|_| Err(io::Error::other("the thread that walks has panicked")))
        })
    }

    fn walk_all(&self, take: &mut dyn FnMut(&Event)) -> io::Result<Walked> {
        let mut walked = Walked::default();
        self.read(take)?;
        for namespace in namespaces::others() {
            let outcome = namespace.enter().and_then(|()| self.read(take));
            walked.missed += usize::from(outcome.is_err());
        }
        Ok(walked)
    }

    /// The connections of the network namespace in which this thread is.
    fn read(&self, take: &mut dyn FnMut(&Event)) -> io::Result<()> {
        let mut iter = Iter::new(&self.link).map_err(io::Error::other)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut filled = 0;
        loop {
            match iter.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(()),
                Ok(count) => filled += count,
                // The kernel gives up for a moment when it has gone over very many without anything to tell.
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => continue,
                Err(error) => return Err(error),
            }
            let whole = filled - filled % Event::BYTES;
            buffer[..whole].chunks_exact(Event::BYTES).filter_map(Event::parse).for_each(|event| take(&event));
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
    }
}
