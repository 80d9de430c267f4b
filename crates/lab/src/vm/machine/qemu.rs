//! The command line of QEMU, and the threads that run the guest's processors.

use super::tsc;
use crate::net::probe;
use crate::vm::host_files;
use crate::vm::order::{PORT, PROGRAMS_PORT};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// Memory of a guest in MiB.
const MEMORY_MIB: u32 = 512;

/// Command line of the kernel. `no_timer_check` skips the test of the timer interrupt, which may fail if QEMU has to
/// wait for a busy machine. Because an emulated processor is slow, mitigations of processor faults and clearing of
/// memory are off, and the table of connections, which every sample scans, is small.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off init_on_alloc=0 thash_entries=1024 \
                            random.trust_cpu=on no_timer_check rdinit=/engine -- guest boot";

/// The accelerator that executes a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// The machine's processor (KVM).
    Kvm,
    /// QEMU's emulation (TCG).
    Tcg,
}

impl Accelerator {
    /// Returns the name that QEMU uses.
    pub fn name(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        }
    }
}

/// Network card of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// Name of the tap device.
    pub tap: &'static str,
    /// Ethernet address of the card.
    pub mac: String,
}

/// Devices of a guest that runs programs of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs<'a> {
    /// Folder for the output of the programs.
    pub output: &'a Path,
    /// Socket that is connected to the host of the programs.
    pub socket: RawFd,
}

/// Optional devices of a guest.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices<'a> {
    /// Network card.
    pub card: Option<Card>,
    /// Devices for running programs.
    pub programs: Option<Programs<'a>>,
}

pub(super) fn program() -> Option<PathBuf> {
    probe::tool(PROGRAM)
}

/// Returns the command that starts a guest. Its port is standard input and output, its console is standard error.
pub(super) fn command(
    accelerator: Accelerator,
    image: &Path,
    initramfs: &str,
    devices: &Devices<'_>,
    processors: u32,
) -> Vec<OsString> {
    let (engine, cpu) = match accelerator {
        Accelerator::Kvm => ("kvm", "host"),
        // QEMU 7.2 miscomputes flags after CMPXCHG16B, and the kernel then crashes. Kernels do not need the instruction
        // if the processor lacks it.
        Accelerator::Tcg => ("tcg,thread=multi", "max,-cx16"),
    };
    let program = program().unwrap_or_else(|| PROGRAM.into());
    let mut words: Vec<OsString> = vec![program.into_os_string()];
    // `debug-threads` names threads, by which those of the processors are identified.
    words.extend(["-name", "thalweg,debug-threads=on", "-accel", engine, "-cpu", cpu].map(OsString::from));
    words.extend(["-smp".into(), processors.to_string().into()]);
    words.extend(["-m".into(), MEMORY_MIB.to_string().into()]);
    words.extend(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"].map(OsString::from));
    words.extend(["-kernel".into(), image.into(), "-initrd".into(), initramfs.into()]);
    words.extend(["-append".into(), kernel_command_line(accelerator).into()]);
    words.extend(["-chardev", "file,id=console,path=/dev/stderr", "-serial", "chardev:console"].map(OsString::from));
    words.extend(["-chardev", "stdio,id=port,signal=off", "-device", "virtio-serial-pci"].map(OsString::from));
    words.extend(["-device".into(), format!("virtserialport,chardev=port,name={PORT}").into()]);
    if let Some(Card { tap, mac }) = &devices.card {
        words.extend(["-netdev".into(), format!("tap,id=net,ifname={tap},script=no,downscript=no").into()]);
        words.extend(["-device".into(), format!("virtio-net-pci,netdev=net,mac={mac},romfile=").into()]);
    }
    if let Some(Programs { output, socket }) = devices.programs {
        words.extend(["-chardev".into(), format!("socket,id=programs,fd={socket}").into()]);
        words.extend(["-device".into(), format!("virtserialport,chardev=programs,name={PROGRAMS_PORT}").into()]);
        words.extend(host_files::shares(output));
    }
    words
}

/// Returns the command line of the kernel; see [`tsc`] for the frequency.
fn kernel_command_line(accelerator: Accelerator) -> String {
    match accelerator {
        Accelerator::Kvm => COMMAND_LINE.to_owned(),
        Accelerator::Tcg => format!("tsc_early_khz={} {COMMAND_LINE}", tsc::khz()),
    }
}

/// Returns the threads of a QEMU process that run processors of its guest.
pub(super) fn processors(pid: u32) -> Vec<u32> {
    let is_processor =
        |thread: &u32| fs::read_to_string(format!("/proc/{thread}/comm")).is_ok_and(|name| name.starts_with("CPU "));
    let mut ids = threads(pid);
    ids.retain(is_processor);
    ids.sort_unstable();
    ids
}

pub(super) fn threads(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect()
}
