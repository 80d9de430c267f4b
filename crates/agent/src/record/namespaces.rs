//! Network namespaces: the kernel shows a process the connections of its own only, so that somebody has to go there.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    number: u64,
}

/// The kernel's setting, of the network namespace of whoever opens it.
const DEFAULT_CC: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// The number of that of this process.
///
/// # Errors
/// If /proc is not there.
pub fn own() -> io::Result<u64> {
    number(Path::new("/proc/self/ns/net"))
}

/// All that some process is in, or that `ip netns` keeps, but that of this process. Processes come and go while this looks.
pub fn others() -> Vec<Namespace> {
    let processes = entries("/proc").into_iter().filter(|path| is_process(path)).map(|path| path.join("ns/net"));
    let mut seen: HashSet<u64> = own().into_iter().collect();
    let mut found = Vec::new();
    for path in processes.chain(entries("/run/netns")) {
        // Looking is cheaper than opening, and most processes are in the same.
        let Ok(number) = number(&path) else { continue };
        if seen.contains(&number) {
            continue;
        }
        if let Ok(file) = File::open(&path) {
            seen.insert(number);
            found.push(Namespace { file, number });
        }
    }
    found
}

/// The algorithm that connections of a network namespace get by themselves.
///
/// # Errors
/// If nobody is in it any more, or it cannot be entered.
pub fn default_cc(number: u64) -> io::Result<String> {
    // Of whichever namespace the thread is in that opens it.
    let read = || fs::read_to_string(DEFAULT_CC).map(|name| name.trim().to_owned());
    if own()? == number {
        return read();
    }
    let gone = || io::Error::new(io::ErrorKind::NotFound, "no process is in that network namespace");
    let namespace = others().into_iter().find(|other| other.number == number).ok_or_else(gone)?;
    // A thread of its own, so that the others stay where they are.
    thread::scope(|scope| {
        let asked = thread::Builder::new().name("default".to_owned()).spawn_scoped(scope, || {
            namespace.enter()?;
            read()
        })?;
        asked.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asks has panicked")))
    })
}

/// The defaults of the other network namespaces, by their numbers, as far as they can be entered.
pub fn other_defaults() -> Vec<(u64, String)> {
    let ask = |namespace: Namespace| {
        let asked = thread::Builder::new().name("default".to_owned()).spawn(move || {
            namespace.enter()?;
            fs::read_to_string(DEFAULT_CC).map(|name| (namespace.number, name.trim().to_owned()))
        });
        asked.ok()?.join().ok()?.ok()
    };
    others().into_iter().filter_map(ask).collect()
}

fn number(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|metadata| metadata.ino())
}

fn entries(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn is_process(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.bytes().all(|letter| letter.is_ascii_digit()))
}

impl Namespace {
    /// Its number, as the kernel shows it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Moves the calling thread there.
    ///
    /// # Errors
    /// If this process may not.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_not_among_the_others_and_none_is_there_twice() {
        let others: Vec<u64> = others().iter().map(Namespace::number).collect();
        let different: HashSet<u64> = others.iter().copied().collect();
        assert_eq!(different.len(), others.len());
        assert!(!different.contains(&own().unwrap()));
    }
}
