//! Finds the processes that have a BPF link or map open.

use crate::text::on_one_line;
use std::fs;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub pid: i32,
    /// Name of the process.
    pub name: String,
}

impl Holder {
    /// Returns whether the process is named `thalweg-agent`.
    pub fn is_agent(&self) -> bool {
        // The kernel truncates process names to 15 characters; this one is shorter.
        self.name == "thalweg-agent"
    }
}

/// Kinds of kernel objects that a process may have open, by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A link.
    Link(u32),
    /// A map.
    Map(u32),
}

/// Returns the processes that have an object open, except this one.
pub fn holders(held: Held) -> Vec<Holder> {
    let line = match held {
        Held::Link(number) => format!("link_id:\t{number}"),
        Held::Map(number) => format!("map_id:\t{number}"),
    };
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut holders: Vec<Holder> = pids
        .filter(|pid| *pid != own && holds(*pid, &line))
        .map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Holder { pid, name: on_one_line(name.trim_end()) }
        })
        .collect();
    holders.sort_by_key(|holder| holder.pid);
    holders
}

/// Returns whether a process has an object open; false if the process cannot be read.
fn holds(pid: i32, line: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    files.flatten().any(|file| {
        let description = fs::read_to_string(file.path()).unwrap_or_default();
        description.lines().any(|listed| listed == line)
    })
}
