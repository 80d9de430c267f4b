//! Probes the features of this machine's kernel, and permissions. Most features are tried in a temporary namespace
//! rather than inferred from the kernel's version.

use crate::error::Error;
use crate::net::holder::{FIFO_PRIORITY, Holder, search_path};
use crate::net::places::ROUTER;
use crate::net::sys::{self, Act};
use crate::net::{build, qdisc, refusal, shell::Shell, sysctl};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Programs that networks need; some experiments do not need `tc` and `ethtool`.
const TOOLS: &[&str] = &["unshare", "cat", "ip", "tc", "ethtool"];

/// Checks that the kernel supports IPv6.
///
/// # Errors
/// `no-ipv6`: the kernel does not support it, or it is disabled.
pub(crate) fn ipv6() -> Result<(), Error> {
    let switch = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    match switch.as_deref().map(str::trim) {
        Ok("0") => Ok(()),
        Ok(_) => Err(Error::new(
            "no-ipv6",
            "path.ip is 6, but IPv6 is disabled in this kernel",
            "sudo sysctl net.ipv6.conf.default.disable_ipv6=0, or remove path.ip from the scenario",
        )),
        Err(_) => Err(Error::new(
            "no-ipv6",
            "path.ip is 6, but this kernel has no IPv6",
            "remove path.ip from the scenario; or, for uml: echo CONFIG_IPV6=y > v6.config; thalweg kernel build \
             --config v6.config",
        )),
    }
}

/// Queue disciplines that are probed, with valid parameters of each.
const QDISCS: &[(&str, &str)] = &[
    ("netem", "limit 1000 delay 1ms"),
    ("htb", ""),
    ("tbf", "rate 1mbit burst 3000 limit 3000"),
    ("bfifo", "limit 3000"),
    ("pfifo", "limit 10"),
    ("codel", ""),
    ("fq_codel", ""),
    ("pie", ""),
    ("fq_pie", ""),
    ("red", "limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1"),
    ("fq", ""),
    ("cake", ""),
    ("dualpi2", ""),
];

/// The filter action that drops packets above a rate; it is listed among the supported queue disciplines.
pub(crate) const POLICE: &str = "police";

/// The kernel's taint flags of a module that was built outside of its source tree, or is unsigned.
const FOREIGN: [char; 2] = ['O', 'E'];

/// Length of the header of an ELF note in bytes: the lengths of its name and content, and its type. Name and content
/// follow, each padded to a multiple of four bytes.
const NOTE_HEADER_LEN: usize = 12;

/// Type of the ELF note `GNU` that contains a build id.
const NT_GNU_BUILD_ID: usize = 3;

/// Number of bytes of a build id that a version contains.
const BUILD_ID_LEN: usize = 4;

/// Cached results about the running kernel.
static NAMESPACES: OnceLock<Result<(), Error>> = OnceLock::new();
static ALGORITHMS: OnceLock<Result<Vec<String>, Error>> = OnceLock::new();
static DISCIPLINES: OnceLock<Result<BTreeSet<String>, Error>> = OnceLock::new();

/// Adopts the results of an earlier probe of this kernel.
pub(crate) fn believe(algorithms: Vec<String>, qdiscs: BTreeSet<String>) {
    // Results that this process has probed itself take precedence.
    let _ = (ALGORITHMS.set(Ok(algorithms)), DISCIPLINES.set(Ok(qdiscs)));
}

/// Returns the release of the kernel that this process runs on.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns the release and the start of the build id of the kernel that this process runs on, because several builds
/// can have the same release. Without a readable build id, returns the release only.
pub fn version() -> String {
    let id = fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id(&notes));
    id.map_or_else(release, |id| format!("{} {id}", release()))
}

/// Returns the start of the build id in a sequence of ELF notes, in hexadecimal.
fn build_id(notes: &[u8]) -> Option<String> {
    let mut notes = notes;
    loop {
        let word = |at: usize| usize::try_from(u32::from_ne_bytes(*notes.get(at..)?.first_chunk()?)).ok();
        let (name_len, content_len, kind) = (word(0)?, word(4)?, word(8)?);
        let name = notes.get(NOTE_HEADER_LEN..NOTE_HEADER_LEN + name_len)?;
        let content_at = NOTE_HEADER_LEN + name_len.next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            let start = notes.get(content_at..content_at + content_len.min(BUILD_ID_LEN))?;
            return Some(start.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(content_at + content_len.next_multiple_of(4)..)?;
    }
}

/// Returns the list of modules that can be loaded, `modules.dep`; `None` if it is missing.
pub(crate) fn modules() -> Option<String> {
    fs::read_to_string(format!("/lib/modules/{}/modules.dep", release())).ok()
}

/// Returns the congestion controls that this kernel has as modules and that are not loaded.
pub fn unloaded_algorithms() -> Vec<String> {
    let loaded = algorithms();
    let modules = modules().unwrap_or_default();
    algorithms_among(&modules).filter(|name| !loaded.iter().any(|is| is == name)).map(str::to_owned).collect()
}

/// Returns the congestion controls in a list of modules, `modules.dep`: those named `tcp_NAME`, except `tcp_diag`.
fn algorithms_among(modules: &str) -> impl Iterator<Item = &str> {
    let paths = modules.lines().filter_map(|line| Some(line.split_once(".ko")?.0));
    paths.filter_map(|path| path.rsplit('/').next()?.strip_prefix("tcp_")).filter(|&name| name != "diag")
}

/// Returns the loaded modules that are named after a congestion control and were not built with this kernel, each with
/// the start of its build id. Modules without a readable build id are omitted.
pub fn own_modules() -> Vec<(String, String)> {
    own_modules_in(Path::new("/sys/module"), &algorithms())
}

fn own_modules_in(folder: &Path, algorithms: &[String]) -> Vec<(String, String)> {
    let names = algorithms.iter().flat_map(|name| [format!("tcp_{name}"), name.clone()]);
    let own = names.filter(|name| {
        let taint = fs::read_to_string(folder.join(name).join("taint")).unwrap_or_default();
        taint.contains(FOREIGN)
    });
    own.filter_map(|name| {
        let notes = fs::read(folder.join(&name).join("notes/.note.gnu.build-id")).ok()?;
        Some((name, build_id(&notes)?))
    })
    .collect()
}

/// Returns the congestion controls that are built into the kernel or loaded.
pub fn algorithms() -> Vec<String> {
    let names = sysctl::read("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Checks that this machine permits the creation of namespaces, and has the required tools.
///
/// # Errors
/// `no-tool`: a program is missing. `no-namespaces`: they are not permitted. Or the code of an exhausted resource or of
/// a failed command.
pub fn namespaces() -> Result<(), Error> {
    let attempt = || {
        if let Some(missing) = TOOLS.iter().find(|name| !has_tool(name)) {
            return Err(refusal::missing_tool(missing));
        }
        let mut shell = Shell::start()?;
        build::namespaces(&mut shell, [].into_iter())?;
        shell.run(Some(ROUTER), build::LOOPBACK)
    };
    NAMESPACES.get_or_init(attempt).clone()
}

/// Returns the congestion controls that a socket in a namespace of the engine can use. They include the kernel's
/// restricted ones: the owner of a namespace may use all.
///
/// # Errors
/// If the system refuses the probe; the list is then unknown, not empty.
pub fn usable_algorithms() -> Result<Vec<String>, Error> {
    let find = || -> Result<Vec<String>, Error> {
        let names = algorithms();
        let questions = names.iter().filter_map(|name| CString::new(name.as_str()).ok()).map(Act::Algorithm);
        let holder = Holder::start()?;
        let answers = holder.act(questions.collect()).map_err(|error| refusal::explain(&error))?;
        Ok(names.into_iter().zip(answers).filter(|(_, answer)| answer.is_ok()).map(|(name, _)| name).collect())
    };
    ALGORITHMS.get_or_init(find).clone()
}

/// Returns the queue disciplines among `QDISCS` that the kernel accepts; also [`POLICE`] if the kernel accepts it.
///
/// # Errors
/// The same as [`usable_algorithms`].
pub fn qdiscs() -> Result<BTreeSet<String>, Error> {
    let find = || {
        let mut qdiscs = qdisc::accepted(QDISCS)?;
        if qdisc::has_policers()? {
            qdiscs.insert(POLICE.to_owned());
        }
        Ok(qdiscs)
    };
    DISCIPLINES.get_or_init(find).clone()
}

/// Returns whether this process may start processes under SCHED_FIFO.
pub fn is_realtime_allowed() -> bool {
    sys::may_have_fifo(FIFO_PRIORITY)
}

/// Returns whether a program is in the search path, including system folders.
pub fn has_tool(name: &str) -> bool {
    tool(name).is_some()
}

/// Returns the path of a program.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    search_path().split(':').map(|folder| Path::new(folder).join(name)).find(|place| place.is_file())
}

/// Checks that a namespace may have a tap device and a bridge, which connect a guest.
///
/// # Errors
/// `no-tap`, or the reason why a namespace cannot be created.
pub(crate) fn taps() -> Result<(), Error> {
    let mut shell = Shell::start()?;
    let try_all = ["ip tuntap add dev t0 mode tap", "ip link add b0 type bridge", "ip link set t0 master b0"];
    shell.run_all(None, &try_all.map(str::to_owned)).map_err(|error| {
        let hint = "run as root, and load the modules: sudo modprobe -a tun bridge";
        Error::new("no-tap", format!("guests cannot be connected to a network: {}", error.message), hint)
    })
}

/// Checks that the relay can open a packet socket in a new namespace.
///
/// # Errors
/// The reason as text.
pub(crate) fn packet_sockets() -> Result<(), String> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let find = || {
        let holder = Holder::start().map_err(|error| error.message)?;
        match holder.act(vec![Act::PacketSocket]).map_err(|error| error.to_string())?.as_slice() {
            [Err(errno), ..] => Err(io::Error::from_raw_os_error(*errno).to_string()),
            _ => Ok(()),
        }
    };
    FOUND.get_or_init(find).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_congestion_controls_are_found_by_name() {
        let modules = "kernel/net/ipv4/tcp_vegas.ko.xz:\nupdates/dkms/tcp_bbr3.ko:\n\
                       kernel/net/ipv4/tcp_diag.ko.zst: kernel/net/ipv4/inet_diag.ko.zst\n\
                       kernel/drivers/nvme/host/nvme-tcp.ko.xz: kernel/drivers/nvme/host/nvme-core.ko.xz\n";
        assert_eq!(algorithms_among(modules).collect::<Vec<_>>(), ["vegas", "bbr3"]);
    }

    fn note(kind: u32, name: &[u8], content: &[u8]) -> Vec<u8> {
        let sizes = [name.len(), content.len()].map(|len| u32::try_from(len).unwrap());
        let mut note: Vec<u8> = [sizes[0], sizes[1], kind].into_iter().flat_map(u32::to_ne_bytes).collect();
        for part in [name, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn only_modules_that_were_not_built_with_the_kernel_are_listed_with_their_build() {
        let folder = tempfile::tempdir().unwrap();
        let modules = [("tcp_bbr", "\n", 1), ("tcp_mine", "OE\n", 2), ("tcp_htcp", "E\n", 3), ("other", "O\n", 4)];
        for (name, taint, build) in modules {
            let module = folder.path().join(name);
            fs::create_dir_all(module.join("notes")).unwrap();
            fs::write(module.join("taint"), taint).unwrap();
            let id = [[0xab, 0, 0xcd, build], [0xee; 4]].concat();
            fs::write(module.join("notes/.note.gnu.build-id"), note(3, b"GNU\0", &id)).unwrap();
        }
        let algorithms = ["reno", "bbr", "mine", "htcp", "unknown"].map(str::to_owned);
        let listed = [("tcp_mine", "ab00cd02"), ("tcp_htcp", "ab00cd03")].map(|(name, id)| (name.into(), id.into()));
        assert_eq!(own_modules_in(folder.path(), &algorithms), listed);
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let others = [note(3, b"Xen\0", &[1; 4]), note(1, b"GNU\0", &[2; 6])].concat();
        assert_eq!(build_id(&others), None);
        let id = note(3, b"GNU\0", &[0x12, 0x34, 0x56, 0x78, 0x9a]);
        assert_eq!(build_id(&[others, id.clone()].concat()).as_deref(), Some("12345678"));
        assert_eq!(build_id(&id[..id.len() - 5]), None, "cut");
    }

    #[test]
    fn the_version_of_this_kernel_has_its_build_id() {
        let version = version();
        assert!(version.starts_with(&release()), "{version}");
        assert_eq!(version.split(' ').count(), 2, "{version}");
    }
}
