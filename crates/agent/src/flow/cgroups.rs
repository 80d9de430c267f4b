//! Finds the recorded cgroup, and maps cgroup ids to paths.

use rustix::fs::{Access, AtFlags, accessat};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_store::Problem;

/// Minimum time between two scans for an unknown cgroup id.
const MIN_RESCAN_INTERVAL: Duration = Duration::from_secs(1);

/// Number of known cgroups above which the next scan forgets removed ones.
const MAX_CGROUPS: usize = 20_000;

/// The cgroup whose connections are recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Path.
    pub path: PathBuf,
    /// Open directory of the cgroup.
    pub folder: File,
    /// The kernel's id of the cgroup: its inode number.
    pub number: u64,
    /// Depth below the mount point of cgroup v2.
    pub level: u64,
}

/// Returns the mount point of cgroup v2.
///
/// # Errors
/// If cgroup v2 is not mounted.
pub fn mount_point() -> Result<PathBuf, Problem> {
    let missing = |found: &str| {
        Problem::missing(
            "no-cgroup2",
            "/proc/self/mountinfo",
            found,
            "a mounted cgroup v2 file system",
            "sudo mkdir -p /sys/fs/cgroup/unified && sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified",
        )
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| missing(&error.to_string()))?;
    find_mount(&mounts).ok_or_else(|| missing("no cgroup v2"))
}

/// Returns the first mount of cgroup v2 (proc_pid_mountinfo(5)).
fn find_mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        kind.starts_with("cgroup2 ").then(|| PathBuf::from(unescaped(point)))
    })
}

/// Decodes special characters, which the kernel writes as three octal digits, such as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain += &part[3..];
            }
            None => plain = plain + "\\" + part,
        }
    }
    plain
}

impl Recorded {
    /// Finds a cgroup by its directory, or by its path below the root of cgroup v2. `None` selects the root.
    ///
    /// # Errors
    /// If it is not a folder below `mount`, or cannot be opened. A missing cgroup is a failure and not an invalid
    /// option, because the cgroup of a service exists only while the service runs.
    pub fn find(mount: &Path, wanted: Option<&Path>) -> Result<Recorded, Problem> {
        let path = match wanted {
            None => mount.to_owned(),
            Some(path) if path.starts_with(mount) => path.to_owned(),
            Some(path) => mount.join(path.strip_prefix("/").unwrap_or(path)),
        };
        let place = wanted.unwrap_or(mount).display().to_string();
        let (code, expected) = ("no-cgroup", "a cgroup v2 folder");
        let hint = format!(
            "cgroups are the folders below {}; that of a service exists while it runs: systemctl show -p ControlGroup \
             NAME",
            mount.display()
        );
        let refused = |found: String| Problem::refused(code, &place, found, expected, &hint);
        let path = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Problem::failed(code, &place, "nothing", expected, &hint),
            _ => refused(error.to_string()),
        })?;
        let Ok(below) = path.strip_prefix(mount) else {
            return Err(refused("a folder outside of cgroup v2".to_owned()));
        };
        let level = below.components().count() as u64;
        let folder = File::open(&path).map_err(|error| refused(error.to_string()))?;
        let metadata = folder.metadata().map_err(|error| refused(error.to_string()))?;
        if !metadata.is_dir() {
            return Err(refused("a file".to_owned()));
        }
        Ok(Recorded { number: metadata.ino(), level, path, folder })
    }
}

/// State of a recorded cgroup.
#[derive(Debug)]
pub enum CgroupState {
    /// The cgroup still exists.
    Same,
    /// The path now belongs to another cgroup.
    Replaced(Recorded),
    /// The cgroup no longer exists, and no other one is at its path; the text is the reason.
    Removed(String),
}

/// Magic number of the cgroup2 file system (statfs(2)).
const CGROUP2_MAGIC: u64 = 0x6367_7270;

impl Recorded {
    /// Returns the state of the cgroup.
    pub fn state(&self, mount: &Path) -> CgroupState {
        let cgroup = match fs::metadata(&self.path) {
            Ok(metadata) if metadata.ino() == self.number => return CgroupState::Same,
            Ok(_) => Recorded::find(mount, Some(&self.path)).map_err(|problem| problem.found),
            Err(error) => Err(error.to_string()),
        };
        match cgroup {
            Ok(other) if other.is_cgroup() => CgroupState::Replaced(other),
            // The file system may have been mounted elsewhere meanwhile.
            _ if self.is_alive() => CgroupState::Same,
            Ok(_) => CgroupState::Removed("another folder is in its place".to_owned()),
            Err(why) => CgroupState::Removed(why),
        }
    }

    fn is_cgroup(&self) -> bool {
        rustix::fs::fstatfs(&self.folder).is_ok_and(|stat| stat.f_type as u64 == CGROUP2_MAGIC)
    }

    /// Returns whether the cgroup still exists: a removed directory has no files.
    fn is_alive(&self) -> bool {
        accessat(&self.folder, "cgroup.procs", Access::EXISTS, AtFlags::empty()).is_ok()
    }
}

/// The paths of cgroups by id, including removed ones.
#[derive(Clone, Debug)]
pub struct Paths {
    mount: PathBuf,
    known: HashMap<u64, Arc<str>>,
    read: Option<Instant>,
}

impl Paths {
    /// Returns an empty table.
    pub fn new(mount: PathBuf) -> Paths {
        Paths { mount, known: HashMap::new(), read: None }
    }

    /// Returns the path of a cgroup below the root; `None` if it is unknown.
    pub fn of(&mut self, number: u64) -> Option<Arc<str>> {
        if !self.known.contains_key(&number) && self.read.is_none_or(|read| read.elapsed() >= MIN_RESCAN_INTERVAL) {
            self.read = Some(Instant::now());
            if self.known.len() > MAX_CGROUPS {
                self.known.clear();
            }
            let mount = self.mount.clone();
            self.learn(&mount, String::new());
        }
        self.known.get(&number).cloned()
    }

    fn learn(&mut self, folder: &Path, path: String) {
        let Ok(metadata) = fs::symlink_metadata(folder) else { return };
        let text = if path.is_empty() { "/" } else { path.as_str() };
        // The kernel does not reuse 64-bit ids in practice, so the paths of removed cgroups stay valid.
        if self.known.get(&metadata.ino()).is_none_or(|path| **path != *text) {
            self.known.insert(metadata.ino(), Arc::from(text));
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            self.learn(&entry.path(), format!("{path}/{}", entry.file_name().to_string_lossy()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_store::Exit;

    #[test]
    fn the_cgroup_v2_mount_is_found_among_v1_mounts() {
        let mounts = "24 30 0:22 / /proc rw - proc proc rw\n\
                      31 30 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      32 30 0:27 / /sys/fs/my\\040cgroups rw,nosuid shared:5 - cgroup2 cgroup2 rw\n";
        assert_eq!(find_mount(mounts), Some(PathBuf::from("/sys/fs/my cgroups")));
        assert_eq!(find_mount("31 30 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
    }

    #[test]
    fn cgroups_are_found_by_path_with_or_without_the_mount() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path().canonicalize().unwrap();
        fs::create_dir_all(mount.join("system.slice/nginx.service")).unwrap();
        let find = |path: &str| Recorded::find(&mount, Some(Path::new(path)));
        let full = find(mount.join("system.slice/nginx.service").to_str().unwrap()).unwrap();
        for path in ["/system.slice/nginx.service", "system.slice/nginx.service"] {
            let cgroup = find(path).unwrap();
            assert_eq!((cgroup.number, cgroup.level), (full.number, 2));
        }
        assert_eq!(Recorded::find(&mount, None).unwrap().level, 0);
        let problem = |path: &str| find(path).map(|_| ()).map_err(|problem| (problem.code, problem.exit));
        assert_eq!(problem("/missing.slice"), Err(("no-cgroup", Exit::Failed)), "it can be there at the next start");
        assert_eq!(problem("../.."), Err(("no-cgroup", Exit::Refused)));
    }

    #[test]
    fn cgroup_ids_resolve_to_paths_after_the_cgroup_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a.slice/b.service");
        fs::create_dir_all(&inner).unwrap();
        let number = |path: &Path| fs::metadata(path).unwrap().ino();
        let (root, inner_number) = (number(folder.path()), number(&inner));
        let mut paths = Paths::new(folder.path().to_owned());
        assert_eq!(paths.of(root).as_deref(), Some("/"));
        fs::remove_dir(&inner).unwrap();
        assert_eq!(paths.of(inner_number).as_deref(), Some("/a.slice/b.service"));
        assert_eq!(paths.of(0), None);
    }
}
