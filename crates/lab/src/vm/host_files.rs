//! The machine's files in a guest that runs programs: its entire file system, read-only, and the output folder.
//!
//! ```text
//!  machine                     guest
//!  /          ── 9p, read-only ──► /machine ─┐ overlay ─► /tree             the root of the programs' host
//!                      memory ──► upper ─────┘              ├ proc sys dev run
//!  run/programs/<id>  ── 9p ────────────────────────────────► └ run/programs/<id>
//! ```
//!
//! What a program writes stays in the guest's memory and is lost, except in the output folder.
//!
//! Source: Linux Documentation/filesystems/9p.rst and overlayfs.rst; QEMU, invocation, -fsdev and virtio-9p-pci.

use super::order::HostFiles;
use super::sys;
use crate::error::Error;
use rustix::mount::{MountFlags, mount};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Modules that mounting the files requires.
pub(super) const MODULES: &[&str] = &["9pnet_virtio", "9p", "overlay"];

const TREE: &str = "tree";
const OUTPUT: &str = "output";

/// Mount options of both shares; `msize` limits the size of a message in bytes.
const OPTIONS: &str = "trans=virtio,version=9p2000.L,cache=loose,msize=524288";

/// Mount point of the machine's files, folders for the guest's changes, and mount point of the overlay of both.
const LOWER: &str = "/machine";
const WRITTEN: [&str; 2] = ["/run/tree/upper", "/run/tree/work"];
const ROOT: &str = "/tree";

/// Virtual file systems to mount on the overlay: kind and mount point.
const FILE_SYSTEMS: &[(&str, &str)] =
    &[("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev"), ("tmpfs", "dev/shm"), ("tmpfs", "run")];

/// Returns the options of QEMU that share the files.
pub(super) fn shares(output: &Path) -> Vec<OsString> {
    let share = |tag: &str, path: &Path, access: &str| {
        let mut fsdev = OsString::from(format!("local,id={tag},security_model=none,multidevs=remap{access},path="));
        // In a value, a comma is escaped by doubling.
        fsdev.push(path.to_string_lossy().replace(',', ",,"));
        let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
        ["-fsdev".into(), fsdev, "-device".into(), device.into()]
    };
    share(TREE, Path::new("/"), ",readonly=on").into_iter().chain(share(OUTPUT, output, "")).collect()
}

/// Returns the mounts of [`mount_all`]: kind, source, target, options.
fn mounts(output: &Path) -> Vec<(&'static str, &'static str, PathBuf, String)> {
    let [upper, work] = WRITTEN;
    let tree = Path::new(ROOT);
    let mut mounts = vec![
        ("9p", TREE, PathBuf::from(LOWER), format!("ro,{OPTIONS}")),
        ("overlay", "overlay", tree.to_owned(), format!("lowerdir={LOWER},upperdir={upper},workdir={work}")),
    ];
    mounts.extend(FILE_SYSTEMS.iter().map(|(kind, place)| (*kind, *kind, tree.join(place), String::new())));
    mounts.push(("9p", OUTPUT, below(tree, output), OPTIONS.to_owned()));
    mounts
}

/// Returns commands that have the same effect as [`mount_all`].
pub(crate) fn commands(output: &Path) -> Vec<String> {
    let command = |(kind, what, place, options): (&str, &str, PathBuf, String)| {
        let options = if options.is_empty() { options } else { format!("-o {options} ") };
        format!("mount -t {kind} {options}{what} {}", place.display())
    };
    mounts(output).into_iter().map(command).collect()
}

/// Mounts the files, in a guest.
///
/// # Errors
/// `no-guest`: a folder cannot be created or mounted.
pub(super) fn mount_all(files: &HostFiles) -> Result<(), Error> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        let message = format!("in the guest, the machine's programs are not accessible: {what}: {error}");
        let hint = "the kernel needs CONFIG_NET_9P_VIRTIO, CONFIG_9P_FS and CONFIG_OVERLAY_FS; thalweg kernel fetch \
                    linux-image-amd64 --force gets one that has them";
        Error::new("no-guest", message, hint)
    };
    for folder in [LOWER, ROOT].into_iter().chain(WRITTEN) {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    for (kind, what, place, options) in mounts(&files.output) {
        let (flags, options) = match options.strip_prefix("ro,") {
            Some(options) => (MountFlags::RDONLY, options),
            None => (MountFlags::empty(), options.as_str()),
        };
        let _ = fs::create_dir_all(&place);
        let options = std::ffi::CString::new(options).map_err(|error| failed(what, &error))?;
        mount(what, &place, kind, flags, &*options)
            .map_err(|error| failed(&format!("mounting {what} ({kind}) at {}", place.display()), &error))?;
    }
    Ok(())
}

/// Starts the host that runs the programs, in the mounted files.
///
/// # Errors
/// If the process cannot be started.
pub(super) fn start_host(files: &HostFiles, port: &fs::File) -> io::Result<Child> {
    let mut host = Command::new(&files.engine);
    host.arg("host").env_clear().envs(&files.environment);
    host.stdin(port.try_clone()?).stdout(port.try_clone()?).stderr(Stdio::inherit());
    sys::root_at(&mut host, ROOT)?.spawn()
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_shared_read_only_and_a_comma_in_a_path_is_kept() {
        let words: Vec<String> =
            shares(Path::new("/runs/a,b")).into_iter().map(|word| word.into_string().unwrap()).collect();
        let shared: Vec<&String> = words.iter().filter(|word| word.starts_with("local,")).collect();
        assert!(shared[0].contains("id=tree,") && shared[0].ends_with("readonly=on,path=/"), "{shared:?}");
        assert!(shared[1].contains("id=output,") && shared[1].ends_with(",path=/runs/a,,b"), "{shared:?}");
        assert!(!shared[1].contains("readonly"));
    }

    #[test]
    fn the_commands_mount_the_output_where_the_machine_has_it() {
        let commands = commands(Path::new("/runs/programs/1"));
        assert!(commands[0].starts_with("mount -t 9p -o ro,trans=virtio,"), "{commands:?}");
        assert!(commands.contains(&"mount -t proc proc /tree/proc".to_owned()), "{commands:?}");
        assert!(commands.last().unwrap().ends_with(" output /tree/runs/programs/1"), "{commands:?}");
    }
}
