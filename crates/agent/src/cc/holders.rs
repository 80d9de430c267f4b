//! Which processes keep a registration alive: those that have its link open.

use std::fs;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: i32,
    /// What it calls itself.
    pub name: String,
}

impl Holder {
    /// Is it a `thalweg-agent`?
    pub fn is_agent(&self) -> bool {
        // The kernel cuts names after 15 letters.
        self.name == "thalweg-agent"
    }
}

/// The processes that have a link open.
pub fn holders(link: u32) -> Vec<Holder> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut holders: Vec<Holder> = pids
        .filter(|pid| holds(*pid, link))
        .map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Holder { pid, name: name.trim_end().to_owned() }
        })
        .collect();
    holders.sort_by_key(|holder| holder.pid);
    holders
}

/// The kernel describes each open file; processes come and go while this looks.
fn holds(pid: i32, link: u32) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    files.flatten().any(|file| {
        let description = fs::read_to_string(file.path()).unwrap_or_default();
        let number = description.lines().find_map(|line| line.strip_prefix("link_id:"));
        number.is_some_and(|number| number.trim() == link.to_string())
    })
}
