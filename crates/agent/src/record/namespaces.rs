//! Network namespaces: the kernel shows a process the connections of its own only, so that somebody has to go there.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    number: u64,
}

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
