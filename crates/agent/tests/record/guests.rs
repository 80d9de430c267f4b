//! The same tests on other kernels: in guests of those that `thalweg kernel fetch` has fetched. A guest gets this program, the
//! agent, and the tools that the tests call.

use crate::common::left_out;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What runs there. Not what takes nftables, or a machine that is quick.
const TESTS: [&str; 16] = [
    "bbr::bbr_on_a_short_path_is_not_short_of_cpu_unless_its_machine_was_off_cpu",
    "beginnings::connections_in_all_namespaces_that_were_open_before_are_joined",
    "beginnings::a_connection_that_stays_open_has_interim_rows_and_a_last_one",
    "beginnings::open_connections_are_shown",
    "beginnings::a_socket_that_is_connected_again_is_another_connection",
    "clock::times_follow_a_clock_that_is_set_and_durations_do_not",
    "endings::whose_fin_came_first_is_told_by_both_ends",
    "endings::a_reset_is_told_by_both_ends",
    "endings::endpoints_namespaces_and_cgroups_are_those_of_the_socket",
    "endings::the_algorithm_is_told_as_it_was_at_the_opening_and_at_the_end",
    "forgotten::connections_that_end_while_nobody_tells_are_searched_for_and_leave_no_trace",
    "forgotten::a_connection_that_is_open_when_a_walk_comes_is_told_of_again",
    "many::more_connections_than_there_is_room_for_are_counted",
    "refusals::a_killed_recorder_leaves_nothing_that_stops_the_next",
    "refusals::every_signal_that_asks_for_an_end_is_one_with_code_0",
    "ss::the_numbers_are_those_of_ss",
];

/// What the tests call.
const TOOLS: [&str; 6] = ["ip", "ss", "unshare", "nsenter", "stdbuf", "busybox"];

/// What stdbuf has the dynamic linker load.
const STDBUF: &str = "/usr/libexec/coreutils/libstdbuf.so";

/// What cables, `ss` and one of the tests want of the kernel, in an order in which it takes them by their names.
const MODULES: [&str; 4] =
    ["drivers/net/veth.ko", "net/ipv4/inet_diag.ko", "net/ipv4/tcp_bbr.ko", "net/ipv4/tcp_diag.ko"];

/// The agent, where this program looks for it.
const AGENT: &str = env!("CARGO_BIN_EXE_thalweg-agent");

/// A guest computes some twenty times slower than this machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The kernel that `thalweg kernel fetch` fetches where Debian 12 runs; there has to be this one at least.
const LEAST: &str = "6.1.";

/// What is set in the environment of tests in a guest.
pub const IS_GUEST: &str = "THALWEG_GUEST";

/// What the guest says when all tests have passed.
const ALL_IS_WELL: &str = "guest: all is well";

const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /busybox
export PATH=/bin:/busybox
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
for module in /modules/*.ko; do insmod $module; done
uname -r
export THALWEG_CI=1 @IS_GUEST@=1
if /bin/tests --test-threads=1 --exact @TESTS@; then echo "@ALL_IS_WELL@"; fi
poweroff -f
"#;

#[test]
fn on_other_kernels_it_does_the_same() {
    let missing: Vec<&str> =
        TOOLS.into_iter().chain(["qemu-system-x86_64", "ldd"]).filter(|tool| find(tool).is_none()).collect();
    if !missing.is_empty() {
        return left_out("guests cannot be started here", &format!("there is no {}", missing.join(", ")));
    }
    let kernels = kernels();
    if !kernels.iter().any(|kernel| name(kernel).starts_with(LEAST)) {
        return left_out("there is no kernel for guests", "thalweg kernel fetch has fetched none of 6.1");
    }
    for kernel in kernels {
        let folder = tempfile::tempdir().expect("a folder");
        let initramfs = initramfs(folder.path(), &kernel);
        let said = boot(&kernel.join("vmlinuz"), &initramfs);
        assert!(said.contains(ALL_IS_WELL), "{}: {said}", kernel.display());
        let passed = format!("{} passed; 0 failed", TESTS.len());
        assert!(said.contains(&passed), "a test has another name: {said}");
        eprintln!("{}: {passed}", name(&kernel));
    }
}

/// Folders of kernels that the agent is made for and that were fetched.
fn kernels() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let Some(entries) = cache.and_then(|cache| fs::read_dir(cache.join("thalweg/vm/kernels")).ok()) else {
        return Vec::new();
    };
    let found = entries.flatten().map(|entry| entry.path()).filter(|path| path.join("vmlinuz").exists());
    let mut found: Vec<PathBuf> = found.filter(|path| version(&name(path)) >= (6, 1)).collect();
    found.sort();
    found
}

fn name(kernel: &Path) -> String {
    kernel.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split('.').map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Where a tool is.
fn find(tool: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|path| path.join(tool))
        .find(|path| path.exists())
}

/// Programs, libraries and modules as an archive that the kernel unpacks.
fn initramfs(folder: &Path, kernel: &Path) -> PathBuf {
    let root = folder.join("root");
    for made in ["bin", "busybox", "modules", "proc", "sys/fs/cgroup", "dev", "tmp", "run", "etc"] {
        fs::create_dir_all(root.join(made)).expect("a folder");
    }
    let mut libraries = BTreeSet::from([PathBuf::from(STDBUF)]);
    let tests = std::env::current_exe().expect("this program");
    let tools = TOOLS.map(|tool| (find(tool).expect("it is there"), Path::new("/bin").join(tool)));
    let ours = [(tests, PathBuf::from("/bin/tests")), (PathBuf::from(AGENT), PathBuf::from(AGENT))];
    for (from, to) in tools.into_iter().chain(ours) {
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
    let init =
        INIT.replace("@TESTS@", &TESTS.join(" ")).replace("@IS_GUEST@", IS_GUEST).replace("@ALL_IS_WELL@", ALL_IS_WELL);
    fs::write(root.join("init"), init).expect("a file");
    fs::set_permissions(root.join("init"), PermissionsExt::from_mode(0o755)).expect("a program");
    let archive = folder.join("initramfs");
    let pack = "cd \"$1\" && find . | busybox cpio -o -H newc > \"$2\" 2> /dev/null";
    let status = Command::new("sh").args(["-c", pack, "sh"]).args([&root, &archive]).status().expect("a shell");
    assert!(status.success(), "an archive is made");
    archive
}

/// A path of the guest, as it is here.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").expect("a whole path"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
}

/// The libraries that a program wants; of a static one there are none.
fn libraries_of(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().expect("ldd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// A module, which newer distributions compress.
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

/// What a guest says until it has ended.
fn boot(image: &Path, initramfs: &Path) -> String {
    let mut command = Command::new("qemu-system-x86_64");
    // Instructions are translated, which works everywhere. QEMU 7.2 miscomputes CMPXCHG16B, and newer kernels do without it.
    command.args(["-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", "1", "-m", "1024"]);
    command.args(["-nographic", "-no-reboot", "-nic", "none", "-kernel"]).arg(image).arg("-initrd").arg(initramfs);
    command.args(["-append", "console=ttyS0 panic=-1 quiet mitigations=off"]);
    let mut guest = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("qemu");
    let mut out = guest.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        out.read_to_end(&mut said).expect("its console");
        String::from_utf8_lossy(&said).into_owned()
    });
    let deadline = Instant::now() + PATIENCE;
    while guest.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            guest.kill().expect("a child");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    reader.join().expect("its console")
}
