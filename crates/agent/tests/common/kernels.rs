//! Runs tests in guests with the kernels that `thalweg kernel fetch` has fetched.

use crate::common::left_out;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The tests to run in each guest, and the files that they need.
pub struct Tests<'a> {
    /// Full names of the tests.
    pub names: &'a [&'a str],
    /// Programs that the tests call, in addition to `TOOLS`.
    pub tools: &'a [&'a str],
    /// Other files that the tests read; their paths in the guest are the same.
    pub files: &'a [&'a str],
}

const TOOLS: [&str; 5] = ["ip", "ss", "unshare", "nsenter", "busybox"];

/// Kernel modules for veth, `ss`, BBR and DCTCP. The guest loads them in the order of their file names.
const MODULES: [&str; 5] = [
    "drivers/net/veth.ko",
    "net/ipv4/inet_diag.ko",
    "net/ipv4/tcp_bbr.ko",
    "net/ipv4/tcp_dctcp.ko",
    "net/ipv4/tcp_diag.ko",
];

/// Path at which the tests expect the agent.
const AGENT: &str = env!("CARGO_BIN_EXE_thalweg-agent");

/// Timeout of a guest, which is emulated; waiting for a CPU does not count.
const PATIENCE: Duration = Duration::from_secs(600);

/// The kernel of Debian 12, which is required.
const REQUIRED: (u32, u32) = (6, 1);

/// The backports kernel of Debian 12. Mirrors may lack it, so it is optional.
const NEWER: (u32, u32) = (6, 12);
const FETCH_NEWER: &str = "thalweg kernel fetch linux-image-cloud-amd64 --suite bookworm-backports";

/// Environment variable that is set in guests.
pub const IS_GUEST: &str = "THALWEG_GUEST";

/// Printed by the guest when the tests have passed.
const ALL_IS_WELL: &str = "guest: all is well";

const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /busybox
export PATH=/bin:/busybox
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; chmod 1777 /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
for module in /modules/*.ko; do insmod $module; done
uname -r
export THALWEG_CI=1 @IS_GUEST@=1
if /bin/tests --test-threads=1 --exact @TESTS@; then echo "@ALL_IS_WELL@"; fi
poweroff -f
"#;

/// Runs tests on the available kernels.
pub fn run_on_all(tests: &Tests<'_>) {
    let tools: Vec<&str> = TOOLS.into_iter().chain(tests.tools.iter().copied()).collect();
    let wanted = tools.iter().copied().chain(["qemu-system-x86_64", "ldd"]);
    let missing: Vec<&str> = wanted.filter(|tool| find(tool).is_none()).collect();
    if !missing.is_empty() {
        return left_out("guests cannot be started here", &format!("there is no {}", missing.join(", ")));
    }
    let kernels = kernels();
    let has = |wanted: (u32, u32)| kernels.iter().any(|kernel| version(&name(kernel)) == wanted);
    if !has(REQUIRED) {
        return left_out("there is no kernel for guests", "thalweg kernel fetch has fetched none of 6.1");
    }
    if !has(NEWER) {
        say(&format!("not run on Linux {}.{}, which is not fetched: {FETCH_NEWER}", NEWER.0, NEWER.1));
    }
    for kernel in kernels {
        let folder = tempfile::tempdir().expect("a folder");
        let initramfs = initramfs(folder.path(), &kernel, &tools, tests);
        let console = boot(&kernel.join("vmlinuz"), &initramfs);
        assert!(console.contains(ALL_IS_WELL), "{}: {console}", kernel.display());
        let passed = format!("{} passed; 0 failed", tests.names.len());
        assert!(console.contains(&passed), "a test has another name: {console}");
        say(&format!("on Linux {}: {passed}", name(&kernel)));
    }
}

/// Prints to standard error. The test harness captures the output of print macros.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "\n{what}");
}

/// Returns the folders of the fetched kernels that the agent supports, one per version, preferably of the cloud kernel.
fn kernels() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let Some(entries) = cache.and_then(|cache| fs::read_dir(cache.join("thalweg/vm/kernels")).ok()) else {
        return Vec::new();
    };
    let kernels = entries.flatten().map(|entry| entry.path()).filter(|path| path.join("vmlinuz").exists());
    let mut kernels: Vec<PathBuf> = kernels.filter(|path| version(&name(path)) >= REQUIRED).collect();
    kernels.sort_by_key(|kernel| (version(&name(kernel)), !name(kernel).contains("cloud")));
    kernels.dedup_by_key(|kernel| version(&name(kernel)));
    kernels
}

fn name(kernel: &Path) -> String {
    kernel.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Parses a kernel release: `6.12.9+bpo-cloud-amd64` is (6, 12).
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn find(tool: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|path| path.join(tool))
        .find(|path| path.exists())
}

fn initramfs(folder: &Path, kernel: &Path, tools: &[&str], tests: &Tests<'_>) -> PathBuf {
    let root = folder.join("root");
    for directory in ["bin", "busybox", "modules", "proc", "sys/fs/cgroup", "dev", "tmp", "run", "etc"] {
        fs::create_dir_all(root.join(directory)).expect("a folder");
    }
    let programs = std::env::current_exe().expect("this program");
    let tools = tools.iter().map(|tool| (find(tool).expect("it is there"), Path::new("/bin").join(tool)));
    let programs = [(programs, PathBuf::from("/bin/tests")), (PathBuf::from(AGENT), PathBuf::from(AGENT))];
    let files = tests.files.iter().map(|file| (PathBuf::from(file), PathBuf::from(file)));
    let mut libraries = BTreeSet::new();
    for (from, to) in tools.chain(programs).chain(files) {
        libraries.extend(libraries_of(&from));
        copy(&from, &inside(&root, &to));
    }
    for library in libraries {
        copy(&library, &inside(&root, &library));
    }
    for module in MODULES {
        unpack(&kernel.join("modules").join(module), &root.join("modules"));
    }
    symlink("/bin/busybox", root.join("bin/sh")).expect("a link");
    let init = INIT.replace("@TESTS@", &tests.names.join(" "));
    let init = init.replace("@IS_GUEST@", IS_GUEST).replace("@ALL_IS_WELL@", ALL_IS_WELL);
    fs::write(root.join("init"), init).expect("a file");
    fs::set_permissions(root.join("init"), PermissionsExt::from_mode(0o755)).expect("a program");
    let archive = folder.join("initramfs");
    let pack = "cd \"$1\" && find . | busybox cpio -o -H newc > \"$2\" 2> /dev/null";
    let status = Command::new("sh").args(["-c", pack, "sh"]).args([&root, &archive]).status().expect("a shell");
    assert!(status.success(), "an archive is made");
    archive
}

fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").expect("a whole path"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}

/// Returns the shared libraries of a program; empty for other files.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Copies a module, and decompresses it if necessary.
fn unpack(module: &Path, folder: &Path) {
    let file = folder.join(module.file_name().expect("a name"));
    if module.exists() {
        return copy(module, &file);
    }
    let packed = PathBuf::from(format!("{}.xz", module.display()));
    let output = Command::new("xz").arg("-dc").arg(&packed).output().expect("xz");
    assert!(output.status.success(), "{}: {output:?}", packed.display());
    fs::write(file, output.stdout).expect("a file");
}

/// Boots a guest, and returns its console output when it powers off or the timeout has expired.
fn boot(image: &Path, initramfs: &Path) -> String {
    let mut command = Command::new("qemu-system-x86_64");
    // Emulated, so that KVM is not required. Without CMPXCHG16B, which QEMU 7.2 miscomputes.
    command.args(["-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", "1", "-m", "1024"]);
    command.args(["-nographic", "-no-reboot", "-nic", "none", "-kernel"]).arg(image).arg("-initrd").arg(initramfs);
    // Without `no_timer_check`, the kernel panics if the emulation pauses while it tests its timer.
    command.args(["-append", "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check"]);
    let mut guest = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("qemu");
    let mut out = guest.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut console = Vec::new();
        out.read_to_end(&mut console).expect("its console");
        String::from_utf8_lossy(&console).into_owned()
    });
    let begin = Instant::now();
    while guest.try_wait().expect("a child").is_none() {
        if begin.elapsed() > PATIENCE + wait_for_cpu(guest.id()) {
            guest.kill().expect("a child");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    reader.join().expect("its console")
}

/// Returns the longest time that a thread of a process has waited for a CPU; zero if unknown.
fn wait_for_cpu(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let waits = threads.filter_map(|thread| {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
    });
    waits.max().unwrap_or_default()
}
