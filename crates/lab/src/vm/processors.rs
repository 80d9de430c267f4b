//! Separates the two processors of a guest: the host's process runs on the first, interrupts on the second.
//!
//! Softirqs run on the processor of their interrupt, which `smp_affinity_list` selects
//! (docs.kernel.org/core-api/irq/irq-affinity.html).

use crate::error::Error;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::io;
use std::path::Path;

/// Processor of the host's process, and processor of the interrupts.
const APPLICATION: usize = 0;
const INTERRUPTS: usize = 1;

/// Returns commands that have the same effect as [`separate`].
pub(crate) fn commands() -> [String; 2] {
    [
        format!("for irq in /proc/irq/*/smp_affinity_list; do echo {INTERRUPTS} > $irq; done"),
        format!("taskset --cpu-list --pid {APPLICATION} 1"),
    ]
}

/// Pins this process, and those that it starts later, to the first processor, and interrupts to the second.
///
/// # Errors
/// `no-guest`: the kernel has one processor, or does not move the interrupts of the network card.
pub(super) fn separate() -> Result<(), Error> {
    let failed = |why: String| {
        let message = format!("in the guest, the second processor cannot be used: {why}");
        Error::new(
            "no-guest",
            message,
            "get a kernel that supports it (thalweg kernel fetch), or remove host.NAME.cpus from the scenario",
        )
    };
    let mut only = CpuSet::new();
    only.set(APPLICATION);
    sched_setaffinity(None, &only).map_err(|error| failed(error.to_string()))?;
    move_interrupts(Path::new("/proc/irq")).map_err(|error| failed(error.to_string()))?;
    let table = fs::read_to_string("/proc/interrupts").map_err(|error| failed(error.to_string()))?;
    for number in of_card(&table) {
        let place = format!("/proc/irq/{number}/smp_affinity_list");
        let affinity = fs::read_to_string(&place).unwrap_or_default();
        if affinity.trim() != INTERRUPTS.to_string() {
            return Err(failed(format!("{place} is {}, expected {INTERRUPTS}", affinity.trim())));
        }
    }
    Ok(())
}

/// Moves the interrupts to the second processor, except those that cannot be moved.
fn move_interrupts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        // Fails for an interrupt that cannot be moved, such as the timer's.
        let _ = fs::write(entry.path().join("smp_affinity_list"), INTERRUPTS.to_string());
    }
    Ok(())
}

/// Returns the numbers of the interrupts of network cards' queues, from `/proc/interrupts`.
fn of_card(table: &str) -> Vec<&str> {
    let is_queue = |line: &&str| line.ends_with("-input.0") || line.ends_with("-output.0");
    table.lines().filter(is_queue).filter_map(|line| line.split(':').next()).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_card_interrupts_are_found_by_queue_name() {
        let table = "           CPU0       CPU1\n  4:  9  0  IO-APIC  4-edge  ttyS0\n 25:  1  7  PCI-MSI 65537-edge  \
                     virtio2-input.0\n 26:  0  3  PCI-MSI 65538-edge  virtio2-output.0\nNMI:  0  0  Non-maskable \
                     interrupts\n";
        assert_eq!(of_card(table), ["25", "26"]);
    }

    #[test]
    fn interrupts_that_cannot_be_moved_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["7", "0"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("7/smp_affinity_list"), "0-1").unwrap();
        fs::create_dir(folder.path().join("0/smp_affinity_list")).unwrap();
        move_interrupts(folder.path()).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("7/smp_affinity_list")).unwrap(), "1");
    }
}
