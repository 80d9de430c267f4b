//! Finds processes that still run in the namespaces of a network.

use crate::error::Error;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Timeout for processes to exit.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until only the holder remains in these network namespaces. Must be called while the holder exists: after its
/// end, the inodes may be reused.
///
/// # Errors
/// `leftovers`, with the processes that do not exit.
pub(crate) fn wait(identities: &BTreeSet<u64>, holder: u32) -> Result<(), Error> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let survivors: Vec<_> = processes(identities).into_iter().filter(|(pid, _)| *pid != holder).collect();
        if survivors.is_empty() {
            return Ok(());
        }
        if Instant::now() > give_up {
            let names: Vec<String> = survivors.iter().map(|(pid, name)| format!("{pid} ({name})")).collect();
            let pids: Vec<String> = survivors.iter().map(|(pid, _)| pid.to_string()).collect();
            return Err(Error::new(
                "leftovers",
                format!("processes still run in the network of the experiment: {}", names.join(", ")),
                format!("kill {}", pids.join(" ")),
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the ids and names of the processes in these namespaces. Omits processes that cannot be inspected, such as
/// those of other users.
pub(crate) fn processes(identities: &BTreeSet<u64>) -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let lives_there = |pid: &u32| {
        fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|namespace| identities.contains(&namespace.ino()))
    };
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    pids.filter(lives_there).map(|pid| (pid, name(pid))).collect()
}
