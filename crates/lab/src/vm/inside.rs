//! The first process of a guest: `thalweg-engine guest boot`.

use super::host_files;
use super::image::initramfs;
use super::image::modules::{self, Module};
use super::order::{HostFiles, Order, PORT, PROGRAMS_PORT, Qdisc, Traits};
use super::processors;
use crate::algorithms::Algorithm;
use crate::algorithms::built_in::BUILT_IN;
use crate::error::Error;
use crate::net::{self, probe, sysctl};
use crate::protocol::HostEvent;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::tcdrain;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// File systems to mount: kind, mount point, and whether the kernel must support it. Small kernels lack bpf, which the
/// agent needs.
const FILE_SYSTEMS: &[(&str, &str, bool)] = &[
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("tmpfs", "/run", true),
    ("tmpfs", "/tmp", true),
    ("bpf", "/sys/fs/bpf", false),
];

/// Timeout for the port to appear after its driver was loaded, and the interval of the checks.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// Executes the order, then shuts the guest down.
///
/// # Errors
/// If this is not the first process of a guest, or the kernel refuses to reboot.
pub fn boot() -> io::Result<()> {
    if !rustix::process::getpid().is_init() {
        return Err(io::Error::other("this command only runs as the first process of a guest, started by its kernel"));
    }
    if let Err(error) = set_up_system().and_then(|modules| find_port(PORT).and_then(|port| execute(modules, &port))) {
        // Printed to the console, whose last lines the engine reports, and drained: a reboot loses unsent output.
        eprintln!("thalweg: {error}");
        let _ = tcdrain(io::stderr());
    }
    // Makes QEMU exit, which also works if the kernel cannot power off the machine.
    reboot(RebootCommand::Restart).map_err(io::Error::from)
}

fn set_up_system() -> io::Result<Modules> {
    for (kind, place, is_needed) in FILE_SYSTEMS {
        match mount(*kind, *place, *kind, MountFlags::empty(), None) {
            // The kernel may already have mounted it.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(_) if !is_needed => {}
            Err(error) => return Err(io::Error::other(format!("{kind} cannot be mounted at {place}: {error}"))),
        }
    }
    let index: Vec<Module> = serde_json::from_slice(&fs::read(Path::new("/").join(initramfs::INDEX))?)?;
    let mut modules = Modules { needs: index.into_iter().map(|module| (module.name, module.needs)).collect() };
    initramfs::devices().try_for_each(|name| modules.load(name))?;
    sysctl::raise_tcp_memory()?;
    Ok(modules)
}

/// Modules of the guest that are not loaded, with their dependencies.
struct Modules {
    needs: BTreeMap<String, Vec<String>>,
}

impl Modules {
    /// Loads a module and its dependencies. A missing module is assumed to be built in.
    fn load(&mut self, name: &str) -> io::Result<()> {
        let Some(needs) = self.needs.remove(name) else { return Ok(()) };
        needs.iter().try_for_each(|name| self.load(name))?;
        insert(&initramfs::module_place(name))
    }

    fn insert(&mut self, place: &str) -> io::Result<()> {
        let bytes = fs::read(Path::new("/").join(place))?;
        modules::needs(&bytes).iter().try_for_each(|name| self.load(name))?;
        insert(place)
    }
}

fn insert(place: &str) -> io::Result<()> {
    let file = File::open(Path::new("/").join(place))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => {
            let kernel_log = last_of_kernel_log().map(|line| format!(" ({line})")).unwrap_or_default();
            Err(io::Error::other(format!("the kernel rejected the module {place}: {error}{kernel_log}")))
        }
    }
}

fn last_of_kernel_log() -> Option<String> {
    let log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
    let mut last = None;
    let mut record = [0; 8192];
    loop {
        match (&log).read(&mut record) {
            Ok(0) | Err(_) => return last,
            Ok(length) => {
                // A record is `priority,number,time,flags;text`.
                let text = String::from_utf8_lossy(&record[..length]).into_owned();
                last = text.split_once(';').and_then(|(_, text)| text.lines().next()).map(str::to_owned);
            }
        }
    }
}

/// Waits for the device of a port that is connected to the engine.
fn find_port(name: &str) -> io::Result<PathBuf> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(port) = named_port(name) {
            return Ok(port);
        }
        if Instant::now() > give_up {
            return Err(io::Error::other(
                "this kernel has no virtio-serial port: it needs CONFIG_VIRTIO_PCI and CONFIG_VIRTIO_CONSOLE, built in \
                 or as modules (--modules DIR)",
            ));
        }
        std::thread::sleep(LOOK);
    }
}

fn named_port(name: &str) -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?.flatten();
    let is_ours = |port: &fs::DirEntry| fs::read_to_string(port.path().join("name")).is_ok_and(|it| it.trim() == name);
    ports.into_iter().find(is_ours).map(|port| Path::new("/dev").join(port.file_name())).filter(|port| port.exists())
}

fn execute(mut modules: Modules, port: &Path) -> io::Result<()> {
    let order = serde_json::from_slice(&fs::read(Path::new("/").join(initramfs::ORDER))?)?;
    match order {
        Order::Probe => say(port, &Ok::<Traits, Error>(traits(&mut modules))),
        Order::Host { network, algorithms, qdisc, processors, programs } => {
            let prepared = algorithms.iter().try_for_each(|algorithm| load_algorithm(&mut modules, algorithm));
            let connected = prepared.and_then(|()| connect(&network));
            let shaped = connected.and_then(|()| qdisc.map_or(Ok(()), |qdisc| set_qdisc(&mut modules, qdisc)));
            let separated = shaped.and_then(|()| if processors > 1 { processors::separate() } else { Ok(()) });
            let reached = separated.and_then(|()| programs.as_ref().map_or(Ok(()), |files| reach(&mut modules, files)));
            match reached {
                Ok(()) => play(port, programs.as_deref()),
                Err(error) => say(port, &HostEvent::Failed(error)),
            }
        }
    }
}

fn say(port: &Path, words: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(words)?;
    line.push(b'\n');
    OpenOptions::new().write(true).open(port)?.write_all(&line)
}

fn traits(modules: &mut Modules) -> Traits {
    let names: BTreeSet<String> = modules.needs.keys().cloned().collect();
    for name in names {
        // The algorithm of a module that does not load is not reported.
        let _ = modules.load(&name);
    }
    let has_agent = Path::new("/").join(initramfs::AGENT).exists();
    let fails = |name: &str| Some((name.to_owned(), load_with_agent(name, &[]).err()?));
    let agent_fails = BUILT_IN.into_iter().filter(|_| has_agent).filter_map(fails).collect();
    Traits { release: probe::release(), algorithms: probe::algorithms(), agent_fails }
}

/// Makes a congestion control available, and verifies that it is.
fn load_algorithm(modules: &mut Modules, algorithm: &Algorithm) -> Result<(), Error> {
    let name = algorithm.name();
    let failed = |why: String| {
        let hint = "check whether it was built for this kernel: thalweg kernel list";
        Error::new("unknown-cc", format!("in the guest, the congestion control `{name}` is not available: {why}"), hint)
    };
    match algorithm {
        Algorithm::Kernel { .. } => modules.load(&format!("tcp_{name}")).map_err(|error| failed(error.to_string()))?,
        Algorithm::Module { file, .. } => {
            // The kernel would reject the registration, and its own algorithm would run.
            if probe::algorithms().iter().any(|known| known == name) {
                let message =
                    format!("the guests' kernel has an algorithm `{name}` already, which the module would not replace");
                let hint = "change the name in the module's tcp_congestion_ops, and the file's name, or `name` in the \
                            scenario";
                return Err(Error::new("unknown-cc", message, hint));
            }
            modules.insert(file).map_err(|error| failed(error.to_string()))?;
        }
        Algorithm::Agent { what, settings, .. } => {
            // Only some algorithms depend on this module.
            let _ = modules.load("tcp_bbr");
            load_with_agent(what, settings).map_err(failed)?;
        }
    }
    let there = probe::algorithms();
    if there.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(failed(format!("the loaded module does not register this name; available: {}", there.join(", "))))
}

/// Makes the agent load an algorithm for the lifetime of the guest.
fn load_with_agent(what: &str, settings: &[String]) -> Result<(), String> {
    let mut agent = Command::new(Path::new("/").join(initramfs::AGENT));
    agent.current_dir("/").args(["cc", "load", what, "--keep"]);
    agent.args(settings.iter().flat_map(|setting| ["--set", setting.as_str()]));
    let output = agent.output().map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(stderr.split_whitespace().collect::<Vec<_>>().join(" ")) }
}

/// Configures the network with these commands of `ip`.
fn connect(commands: &[String]) -> Result<(), Error> {
    // The IPv6 stack sends packets, which would enter the experiment's queues. It is disabled, or, if the path needs
    // it, interfaces get no link-local address.
    let is_ipv6 = commands.iter().any(|command| command.contains("::/0"));
    let switch = if is_ipv6 { "addr_gen_mode" } else { "disable_ipv6" };
    let silent = ["all", "default"].map(|name| format!("/proc/sys/net/ipv6/conf/{name}/{switch}"));
    for file in silent.iter().filter(|file| Path::new(file).exists()) {
        let _ = fs::write(file, "1");
    }
    let failed = |said: &str| {
        let message = format!("in the guest, the network cannot be set up ({}): {said}", commands.join("; "));
        Error::new("command-failed", message, "use a kernel with virtio-net (CONFIG_VIRTIO_NET)")
    };
    // One process runs all commands, because starting a program takes longer than its work.
    let lines: String = commands.iter().map(|line| format!("{}\n", line.trim_start_matches("ip "))).collect();
    let mut ip = Command::new("/bin/ip");
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(|error| failed(&error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // The program stops reading when a command fails, and reports the failure.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(said.split_whitespace().collect::<Vec<_>>().join(" ").as_str()))
    }
}

fn set_qdisc(modules: &mut Modules, qdisc: Qdisc) -> Result<(), Error> {
    let Qdisc { host, name, module, modules: sent_modules, available } = qdisc;
    let failed = |said: String| {
        let has = if available.is_empty() { "no further ones as modules".to_owned() } else { available.join(", ") };
        let has = format!("besides built-in ones, the guests' kernel has {has}");
        let hint = "choose an available one, or a kernel with it: --kernel IMAGE --modules DIR";
        net::qdisc::refused(&host, &name, &format!("in the guest, {said}"), &has, hint)
    };
    modules.needs.extend(sent_modules.into_iter().map(|module| (module.name, module.needs)));
    module.map_or(Ok(()), |module| modules.load(&module)).map_err(|error| failed(error.to_string()))?;
    let command = net::qdisc::command(&name);
    let mut tc = Command::new("/bin/tc");
    tc.args(command.split(' ').skip(1)).stdin(Stdio::null());
    let output = tc.output().map_err(|error| failed(format!("`{command}`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("`{command}`: {}", said.split_whitespace().collect::<Vec<_>>().join(" "))))
}

fn reach(modules: &mut Modules, files: &HostFiles) -> Result<(), Error> {
    modules.needs.extend(files.modules.iter().map(|module| (module.name.clone(), module.needs.clone())));
    for name in host_files::MODULES {
        // Mounting the file system reports the failure.
        let _ = modules.load(name);
    }
    host_files::mount_all(files)
}

/// Runs the host, and starts the host that runs programs if there are any.
fn play(port: &Path, programs: Option<&HostFiles>) -> io::Result<()> {
    if let Some(files) = programs {
        let port = find_port(PROGRAMS_PORT)?;
        let open = OpenOptions::new().read(true).write(true).open(&port)?;
        let mut host = host_files::start_host(files, &open)?;
        std::thread::spawn(move || {
            // A host that was killed, for example because memory was short, has not reported the reason.
            let why = host.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            say(&port, &HostEvent::Failed(host_ended(&why)))
        });
    }
    let port = OpenOptions::new().read(true).write(true).open(port)?;
    let engine = Path::new("/").join(initramfs::ENGINE);
    let mut host = Command::new(engine);
    host.arg("host").env("PATH", "/bin").stdin(port.try_clone()?).stdout(port).stderr(Stdio::inherit());
    host.status().map(drop)
}

fn host_ended(why: &str) -> Error {
    let message = format!("in the guest, the process that runs programs exited ({why})");
    Error::new("host-died", message, "check whether the programs need more than the guest's 512 MiB of memory")
}
