//! Resource usage of this process, from /proc.

use super::snapshot::Usage;
use std::fs;

/// Unit of CPU time in /proc, with a USER_HZ of 100 (proc(5)).
const TICK_US: u64 = 10_000;

impl Usage {
    /// Returns the resource usage of this process, without the kernel's maps; zero without /proc.
    pub fn of_this_process() -> Usage {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        Usage {
            process_bytes: resident_bytes(&read("/proc/self/status")).unwrap_or(0),
            cpu_us: cpu_us(&read("/proc/self/stat")).unwrap_or(0),
            maps_bytes: None,
        }
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Sums `utime` and `stime`, fields 14 and 15. Counts fields after the program's name, which may contain spaces.
fn cpu_us(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11).map(|field| field.parse::<u64>());
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((user + system) * TICK_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_usage_files_are_parsed() {
        assert_eq!(resident_bytes("VmHWM:\t  9000 kB\nVmRSS:\t    8124 kB\nThreads:\t3\n"), Some(8124 * 1024));
        let stat = "77 (a ) b) S 1 77 77 0 -1 4194304 99 0 0 0 250 31 0 0 20 0 3 0 100 0 0";
        assert_eq!(cpu_us(stat), Some(2_810_000));
    }

    #[test]
    fn memory_usage_of_this_process_is_read() {
        let usage = Usage::of_this_process();
        assert!(usage.process_bytes > 100_000 && usage.process_bytes < 1 << 40, "{usage:?}");
    }
}
