//! The network namespaces of a machine: lists them, names them, and enters them. The kernel shows a process only the
//! connections of its own namespace.

mod name;

pub use name::names;

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

/// The network namespaces of a machine, except that of this process.
#[derive(Debug, Default)]
pub struct Others {
    /// Namespaces that contain a process, or that `ip netns` keeps.
    pub found: Vec<Namespace>,
    /// Number of processes whose namespace this process may not read.
    pub hidden: usize,
}

/// Returns the inode number of this process's network namespace.
///
/// # Errors
/// If /proc is not mounted.
pub fn own() -> io::Result<u64> {
    number(Path::new("/proc/self/ns/net"))
}

/// Returns the other namespaces. Those of processes that start or exit during the scan may be missing.
pub fn others() -> Others {
    let mut numbers: HashSet<u64> = own().into_iter().collect();
    let mut others = Others::default();
    for path in processes().into_iter().map(|(_, path)| path.join("ns/net")).chain(mounted()) {
        // stat() is cheaper than opening the file, and most processes are in the same namespace.
        let number = match number(&path) {
            Ok(number) => number,
            Err(error) => {
                others.hidden += usize::from(error.kind() == io::ErrorKind::PermissionDenied);
                continue;
            }
        };
        if numbers.contains(&number) {
            continue;
        }
        match File::open(&path) {
            Ok(file) => {
                numbers.insert(number);
                others.found.push(Namespace { file, number });
            }
            Err(error) => others.hidden += usize::from(error.kind() != io::ErrorKind::NotFound),
        }
    }
    others
}

/// Returns the default congestion control of a network namespace.
///
/// # Errors
/// If the namespace is neither that of this process nor among [`others`], or cannot be entered.
pub fn default_cc(number: u64) -> io::Result<String> {
    if own()? == number {
        return read_default();
    }
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no process runs in this network namespace");
    let namespace = others().found.into_iter().find(|other| other.number == number).ok_or_else(missing)?;
    namespace.within(read_default)
}

/// Returns the number and the default congestion control of each other network namespace that can be entered.
pub fn other_defaults() -> Vec<(u64, String)> {
    let ask = |namespace: Namespace| Some((namespace.number, namespace.within(read_default).ok()?));
    others().found.into_iter().filter_map(ask).collect()
}

/// Reads the kernel's setting, for the network namespace of the calling thread.
fn read_default() -> io::Result<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").map(|name| name.trim().to_owned())
}

pub(crate) fn number(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|metadata| metadata.ino())
}

/// Returns the processes and their /proc folders, sorted by process id.
pub(crate) fn processes() -> Vec<(u32, PathBuf)> {
    let process = |path: PathBuf| Some((path.file_name()?.to_str()?.parse().ok()?, path));
    let mut processes: Vec<(u32, PathBuf)> = entries("/proc").into_iter().filter_map(process).collect();
    processes.sort_unstable_by_key(|(pid, _)| *pid);
    processes
}

/// Returns the files of `ip netns`.
pub(crate) fn mounted() -> Vec<PathBuf> {
    entries("/run/netns")
}

fn entries(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

impl Namespace {
    /// Returns the number of the namespace, its inode.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Moves the calling thread into the namespace.
    ///
    /// # Errors
    /// If this process lacks the permission.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Runs `work` in the namespace in a separate thread, and returns its result: the calling thread stays in its
    /// namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, and those of `work`.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let worker = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, || {
                self.enter()?;
                work()
            })?;
            worker.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace has panicked")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_namespaces_exclude_the_own_one_and_contain_no_duplicates() {
        let others: Vec<u64> = others().found.iter().map(Namespace::number).collect();
        let different: HashSet<u64> = others.iter().copied().collect();
        assert_eq!(different.len(), others.len());
        assert!(!different.contains(&own().unwrap()));
    }
}
