//! Requirements of eBPF programs: the kernel's version and type information, capabilities, and enough open files.

use libbpf_rs::btf::Btf;
use std::fs;
use std::path::Path;
use thalweg_store::{Problem, Shortage, raise_open_files};

/// The oldest supported kernel.
const FLOOR: (u32, u32) = (6, 1);

/// Path of the kernel's type information.
pub const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// A capability of a process (capabilities(7)): its name and number.
pub type Right = (&'static str, u32);

/// Permits loading programs that are attached to a cgroup.
pub const NET_ADMIN: Right = ("CAP_NET_ADMIN", 12);

/// Accepted by bpf(2) in place of the others; permits opening BPF objects by id.
pub const SYS_ADMIN: Right = ("CAP_SYS_ADMIN", 21);

/// Permits programs that read kernel structures.
pub const PERFMON: Right = ("CAP_PERFMON", 38);

/// Permits loading programs and creating maps.
pub const BPF: Right = ("CAP_BPF", 39);

/// Number of files that `record` and `tune` need in addition to open ones.
pub const FILES_OF_RECORDER: u64 = 56;

/// Number of files that `cc` needs in addition to open ones.
pub const FILES_OF_CC: u64 = 28;

/// Raises the limit of open files as far as this process may, and checks that it is high enough.
///
/// # Errors
/// If it is too low.
pub fn check_files(needed: u64) -> Result<(), Problem> {
    let (Some(limit), open) = (raise_open_files(), open_files()) else { return Ok(()) };
    if limit.saturating_sub(open) >= needed {
        return Ok(());
    }
    let found = format!("{open} open files and a limit of {limit}");
    Err(Problem::exhausted(
        Shortage::Descriptors,
        "this process",
        found,
        &format!("a limit that permits {needed} more"),
    ))
}

/// Returns the number of open files; at least 3, also if no file descriptor is left to count them.
fn open_files() -> u64 {
    let count = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1));
    (count as u64).max(3)
}

/// Checks the kernel's version.
///
/// # Errors
/// If it is too old.
pub fn check_version() -> Result<(), Problem> {
    let release = release();
    match version(&release) {
        Some(version) if version < FLOOR => Err(Problem::missing(
            "old-kernel",
            "this kernel",
            format!("Linux {release}"),
            "6.1 or newer",
            "boot a newer kernel",
        )),
        _ => Ok(()),
    }
}

/// Returns the release of the running kernel, as `uname -r` prints it.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Parses a kernel release: `6.1.0-50-amd64` is (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Checks that this process has one of the capabilities in each list, and is in the initial user namespace.
///
/// # Errors
/// If a capability is missing, or the process is in another user namespace.
pub fn check_rights(needed: &[&[Right]]) -> Result<(), Problem> {
    let missing =
        |found: &str, expected: &str, hint: &str| Problem::missing("no-right", "this process", found, expected, hint);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    let lacks = |any: &&&[Right]| !any.iter().any(|(_, bit)| capabilities & 1 << bit != 0);
    if let Some((name, _)) = needed.iter().find(lacks).and_then(|any| any.first()) {
        return Err(if rustix::process::geteuid().is_root() {
            let both = if *name == SYS_ADMIN.0 { (*name).to_owned() } else { format!("{name} and {}", SYS_ADMIN.0) };
            missing(
                &format!("root without {name} (a container?)"),
                &format!("root with {name}"),
                &format!("run it on the host, or add {both} to the container"),
            )
        } else {
            missing("an ordinary user", "root", "put sudo before the command")
        });
    }
    // In the initial user namespace, all users map to themselves.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_initial = map.split_whitespace().eq(["0", "0", "4294967295"]) || map.is_empty();
    if is_initial {
        Ok(())
    } else {
        Err(missing(
            "root of a user namespace",
            "root of the initial user namespace",
            "run it outside of that namespace",
        ))
    }
}

/// Reads the kernel's type information (BTF).
///
/// # Errors
/// If it is missing or cannot be parsed.
pub fn read_btf() -> Result<Btf<'static>, Problem> {
    let missing = |found: String, hint: &str| {
        Problem::missing("no-btf", VMLINUX_BTF, found, "the kernel's type information (CONFIG_DEBUG_INFO_BTF)", hint)
    };
    if !Path::new("/sys/kernel").exists() {
        return Err(missing("no /sys".to_owned(), "mount -t sysfs sys /sys"));
    }
    if !Path::new(VMLINUX_BTF).exists() {
        return Err(missing("no such file".to_owned(), "boot the distribution's own kernel (all of them have it)"));
    }
    Btf::from_path(VMLINUX_BTF).map_err(|error| missing(error.to_string(), "report it with the output of `uname -r`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_are_parsed_from_release_strings() {
        assert_eq!(version("6.1.0-50-cloud-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44"), Some((6, 18)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
        assert!(version("5.15.0") < Some(FLOOR));
    }
}
