//! Walks over all open connections: to join those that were open before recording began, to make interim rows, and to show
//! them. What no walk meets any more is searched for in the table that the programs keep.

use super::event::Event;
use super::namespaces;
use super::program::Program;
use crate::problem::Problem;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};
use std::collections::HashSet;
use std::io::{self, ErrorKind, Read};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What a walk is for: as bpf/flow/record.bpf.c numbers it.
const SHOWS_ALL: u32 = 1;

/// As much as the kernel fills at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Walks.
pub struct Walker {
    walk: Link,
    search: Link,
    /// One walk at a time: what it is for is told to all programs.
    told: Mutex<Told>,
}

/// What is told to them: what the walk is for, and its number.
struct Told {
    to: MapHandle,
    number: u32,
}

/// How a walk went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Network namespaces that were gone through.
    pub seen: HashSet<u64>,
    /// Network namespaces that could not be entered, or not be read to the end.
    pub missed: usize,
}

impl Walker {
    /// A walker with these programs.
    ///
    /// # Errors
    /// If the kernel has no iterator.
    pub fn new(program: &Program) -> Result<Walker, Problem> {
        let told = Told { to: program.map("walk")?, number: 0 };
        Ok(Walker { walk: program.walk()?, search: program.search()?, told: Mutex::new(told) })
    }

    /// Goes over the connections of all network namespaces. Those that are new are joined; those for which it is time, and
    /// those of which only walks tell, are handed over; with `shows_all` all are.
    ///
    /// # Errors
    /// If not even those of the own namespace can be seen.
    pub fn walk(&self, shows_all: bool, take: &mut (dyn FnMut(&Event) + Send)) -> io::Result<Walked> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.number = told.number.wrapping_add(1).max(1);
        let purpose = if shows_all { SHOWS_ALL } else { 0 };
        let words: Vec<u8> = [purpose, told.number].into_iter().flat_map(u32::to_ne_bytes).collect();
        told.to.update(&0u32.to_ne_bytes(), &words, MapFlags::ANY).map_err(io::Error::other)?;
        // A thread of its own, so that the others stay where they are.
        thread::scope(|scope| {
            let walk = thread::Builder::new().name("walk".to_owned()).spawn_scoped(scope, || self.walk_all(take))?;
            walk.join().unwrap_or_else(|_| Err(io::Error::other("the thread that walks has panicked")))
        })
    }

    /// Hands over what is kept of connections that the last walks have not met although they have been where they were, and
    /// that are no more. Nobody has told of their end.
    ///
    /// # Errors
    /// If what is kept cannot be gone through.
    pub fn search(&self, walked: &Walked, take: &mut dyn FnMut(&Event)) -> io::Result<()> {
        // The room for an event is one of both.
        let _told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        read(&self.search, &mut |event| {
            if walked.seen.contains(&u64::from(event.netns)) {
                take(event);
            }
        })
    }

    fn walk_all(&self, take: &mut dyn FnMut(&Event)) -> io::Result<Walked> {
        let mut walked = Walked::default();
        read(&self.walk, take)?;
        walked.seen.extend(namespaces::own());
        for namespace in namespaces::others() {
            match namespace.enter().and_then(|()| read(&self.walk, take)) {
                Ok(()) => walked.seen.extend([namespace.number()]),
                Err(_) => walked.missed += 1,
            }
        }
        Ok(walked)
    }
}

/// The events of an iterator: that over connections goes over those of the network namespace in which this thread is.
fn read(link: &Link, take: &mut dyn FnMut(&Event)) -> io::Result<()> {
    let mut iter = Iter::new(link).map_err(io::Error::other)?;
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
