//! Probes the support for guests on this machine.

use super::qemu::{self, Accelerator, Devices};
use super::sys;
use crate::cache;
use crate::error::Error;
use crate::net::{holder, probe};
use crate::vm::contention::threads::schedstat;
use crate::vm::image::VmKernel;
use crate::vm::image::initramfs::{self, Base};
use crate::vm::order::{Order, Traits};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Timeouts for a guest to boot and to answer, with KVM and emulated.
const ON_KVM: Duration = Duration::from_secs(5);
const ON_TCG: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(500);

const LAST_LINES: usize = 6;

const FORMAT: u64 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProbeResult {
    format: u64,
    /// Boot id of the machine: after a reboot, its hypervisor may be a different one.
    boot_id: String,
    pub traits: Traits,
    pub accelerator: Accelerator,
}

/// Checks that this machine has what guests need except a kernel.
///
/// # Errors
/// If a requirement is missing.
pub(super) fn machine() -> Result<(), Error> {
    if !cfg!(target_arch = "x86_64") {
        let message = "guests need an x86-64 machine";
        return Err(Error::new("no-guests", message, "run it on another machine, or use --engine kernel"));
    }
    if qemu::program().is_none() {
        let message = format!("QEMU ({}) is not installed", qemu::PROGRAM);
        return Err(Error::new("no-tool", message, "sudo apt-get install qemu-system-x86"));
    }
    probe::namespaces()?;
    probe::taps()
}

/// Returns the traits of a kernel, and its accelerator on this machine, from the cache or by booting the kernel.
///
/// # Errors
/// `bad-kernel`: it does not boot, or does not support guests. `no-guest`: QEMU cannot be started.
pub(super) fn ask(kernel: &VmKernel, base: &Base) -> Result<ProbeResult, Error> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    let place = cache::folder().map(|cache| cache.join(format!("vm/traits/{}.json", base.key)));
    let kept = place.as_ref().and_then(|place| serde_json::from_slice::<ProbeResult>(&fs::read(place).ok()?).ok());
    let is_current = |result: &ProbeResult| result.format == FORMAT && result.boot_id == boot_id;
    if let Some(result) = kept.filter(is_current) {
        return Ok(result);
    }
    let (accelerator, traits) = boot(kernel, base)?;
    let result = ProbeResult { format: FORMAT, boot_id, traits, accelerator };
    if let Some(place) = place {
        let _ = serde_json::to_vec(&result).map_err(io::Error::from).and_then(|bytes| cache::keep(&place, &bytes));
    }
    Ok(result)
}

/// Boots a kernel with KVM, or emulated if that fails.
fn boot(kernel: &VmKernel, base: &Base) -> Result<(Accelerator, Traits), Error> {
    let is_kvm_there = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok();
    if is_kvm_there {
        if let Ok(traits) = boot_on(Accelerator::Kvm, ON_KVM, kernel, base) {
            return Ok((Accelerator::Kvm, traits));
        }
    }
    boot_on(Accelerator::Tcg, ON_TCG, kernel, base).map(|traits| (Accelerator::Tcg, traits))
}

fn boot_on(accelerator: Accelerator, patience: Duration, kernel: &VmKernel, base: &Base) -> Result<Traits, Error> {
    let started = |error: io::Error| {
        Error::new("no-guest", format!("a guest cannot be started: {error}"), "close other programs and try again")
    };
    let content = initramfs::with_order(base, &Order::Probe, &[]).map_err(started)?;
    let file = sys::file_in_memory(&content).map_err(started)?;
    let words = qemu::command(
        accelerator,
        &kernel.image,
        &format!("/proc/self/fd/{}", file.as_raw_fd()),
        &Devices::default(),
        1,
    );
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut guest = Guest(sys::hand_over(holder::alone(&mut command), &[file.as_raw_fd()]).spawn().map_err(started)?);
    let (Some(stdout), Some(stderr)) = (guest.0.stdout.take(), guest.0.stderr.take()) else {
        return Err(started(io::Error::other("it has no pipes")));
    };
    let (say, said) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        say.send(read.ok().and_then(|_| serde_json::from_str::<Result<Traits, Error>>(&line).ok()))
    });
    let console = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = BufReader::new(stderr).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let answer = wait_for(&said, patience, || waited(guest.0.id()));
    drop(guest);
    match answer {
        Ok(Some(traits)) => traits,
        silence => {
            let how = if silence.is_ok() { "exited" } else { "produced no output for too long and was stopped" };
            let console = console.join().unwrap_or_default();
            Err(not_booted(&kernel.release, how, &console))
        }
    }
}

/// Returns the next message. The time for which the sender has `waited` for a CPU does not count towards the timeout.
fn wait_for<T>(said: &Receiver<T>, timeout: Duration, waited: impl Fn() -> Duration) -> Result<T, RecvTimeoutError> {
    let start = Instant::now();
    loop {
        match said.recv_timeout(PAUSE.min(timeout)) {
            Err(RecvTimeoutError::Timeout) if start.elapsed().saturating_sub(waited()) < timeout => {}
            answer => return answer,
        }
    }
}

/// Returns the longest time for which a thread of a process has waited for a CPU.
fn waited(process: u32) -> Duration {
    let waiting_ns = qemu::threads(process).into_iter().filter_map(schedstat).map(|[_, waiting_ns]| waiting_ns);
    Duration::from_nanos(waiting_ns.max().unwrap_or(0))
}

/// A guest that is killed when it is dropped.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn not_booted(release: &str, how: &str, console: &str) -> Error {
    let message = format!("a guest with the kernel {release} {how} before it had booted; {}", last_lines(console));
    let hint = "the kernel needs virtio (CONFIG_VIRTIO_PCI, CONFIG_VIRTIO_NET, CONFIG_VIRTIO_CONSOLE), \
                CONFIG_DEVTMPFS, CONFIG_BLK_DEV_INITRD and a serial console, built in or as modules (--modules DIR); \
                thalweg kernel fetch gets one that has them";
    Error::new("bad-kernel", message, hint)
}

/// Returns the last lines of a console, or those around a panic or an error of this program, without call traces.
pub(crate) fn last_lines(console: &str) -> String {
    let is_message = |line: &&str| !line.is_empty() && !line.contains("[<") && !line.contains(" ? ");
    let lines: Vec<&str> = console.lines().map(str::trim).filter(is_message).collect();
    // A panic message precedes its call trace.
    let from = lines.iter().position(|line| line.contains("Kernel panic") || line.starts_with("thalweg: "));
    let lines = from.map_or(&lines[lines.len().saturating_sub(LAST_LINES)..], |from| {
        &lines[from.saturating_sub(1)..(from + 2).min(lines.len())]
    });
    if lines.is_empty() { "it printed nothing".to_owned() } else { format!("its last lines: {}", lines.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn time_in_which_a_guest_waits_for_a_cpu_does_not_count() {
        let (say, said) = mpsc::channel();
        let looks = Cell::new(0);
        let waited = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                say.send("booted").expect("the receiver exists");
            }
            Duration::from_secs(100)
        };
        assert_eq!(wait_for(&said, Duration::from_millis(1), waited), Ok("booted"));
        assert_eq!(looks.get(), 3);
        let answer = wait_for(&said, Duration::from_millis(1), || Duration::ZERO);
        assert_eq!(answer, Err(RecvTimeoutError::Timeout));
    }

    #[test]
    fn the_wait_of_a_thread_for_a_cpu_grows_while_others_run() {
        let own = std::process::id();
        assert_eq!(waited(u32::MAX), Duration::ZERO, "no such process");
        let before = waited(own);
        let until = Instant::now() + Duration::from_secs(30);
        // More threads than processors, until one has waited.
        let have_seen_growth = thread::scope(|scope| {
            let look = || {
                while Instant::now() < until && waited(own) <= before {}
                waited(own) > before
            };
            let all = thread::available_parallelism().expect("processors").get() + 1;
            let threads: Vec<_> = (0..all).map(|_| scope.spawn(look)).collect();
            threads.into_iter().any(|thread| thread.join().expect("no panic"))
        });
        assert!(have_seen_growth);
    }

    #[test]
    fn a_guest_panic_is_reported_with_its_reason_and_without_the_trace() {
        let console = "booting\n[1.6] /dev/root: Can't open blockdev\n[1.6] Kernel panic - not syncing: VFS: no root\n\
                       [1.6] CPU: 0 PID: 1\n[1.6] Call Trace:\n[1.6]  panic+0x118\n[1.6]  ? rest_init+0xd0\n";
        let lines = last_lines(console);
        assert!(lines.contains("Can't open blockdev") && lines.contains("VFS: no root"), "{lines}");
        assert!(!lines.contains("Call Trace"), "{lines}");
        assert_eq!(last_lines("\n"), "it printed nothing");
        assert_eq!(last_lines("one\ntwo\n"), "its last lines: one | two");
    }
}
