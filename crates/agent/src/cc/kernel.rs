//! What the running kernel has of that which an algorithm in eBPF needs.

use crate::problem::Problem;
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The oldest kernel that the programs are made for and tested on.
const FLOOR: (u32, u32) = (6, 1);

/// Where the kernel shows its type information.
const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// A kernel that can register algorithms in eBPF, seen by a process that may.
pub struct Kernel {
    /// Its types.
    pub btf: Btf<'static>,
}

impl Kernel {
    /// Looks at the running kernel.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn look() -> Result<Kernel, Problem> {
        check_version()?;
        check_rights()?;
        let btf = read_btf()?;
        if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
            return Err(Problem::missing(
                "no-struct-ops",
                "this kernel",
                "no struct_ops for TCP in its type information",
                "one with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT",
                "boot the distribution's own kernel",
            ));
        }
        check_jit()?;
        Ok(Kernel { btf })
    }

    /// Does the kernel take a registration back when its loader ends (from Linux 6.4)?
    pub fn has_links(&self) -> bool {
        self.btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some()
    }

    /// How many arguments `cong_control` has: 2 up to Linux 6.9, 4 from 6.10. The kernel's own `bbr_main` is one.
    ///
    /// # Errors
    /// If the kernel's structure is another.
    pub fn cong_control_arguments(&self) -> Result<usize, Problem> {
        let arguments = || {
            let operations: Struct<'_> = self.btf.type_by_name("tcp_congestion_ops")?;
            let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
            let pointer: Ptr<'_> = self.btf.type_by_id(member.ty)?;
            let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
            Some(function.iter().count())
        };
        arguments().ok_or_else(|| {
            Problem::missing(
                "unknown-kernel",
                "this kernel",
                "a tcp_congestion_ops without the function cong_control",
                "that of Linux 6.1 to 6.18",
                "report it with the output of `uname -r`",
            )
        })
    }

    /// Sees to it that the kernel's BBR is there, with its types: loads its module if need be.
    ///
    /// # Errors
    /// If there is none.
    pub fn need_bbr(&self) -> Result<(), Problem> {
        let module_types = Path::new("/sys/kernel/btf/tcp_bbr");
        if self.btf.type_by_name::<BtfType<'_>>("bbr").is_some() || module_types.exists() {
            return Ok(());
        }
        let found = match modprobe("tcp_bbr") {
            Ok(()) if module_types.exists() => return Ok(()),
            Ok(()) => "the module tcp_bbr without type information (BTF)".to_owned(),
            Err(reason) => format!("no BBR in it, and its module does not load ({reason})"),
        };
        Err(Problem::missing(
            "no-bbr",
            "this kernel",
            found,
            "BBR, built in or as the module tcp_bbr, with BTF (CONFIG_TCP_CONG_BBR, CONFIG_DEBUG_INFO_BTF_MODULES)",
            "install the modules of the running kernel (the distribution's own kernels have it), then: sudo modprobe tcp_bbr",
        ))
    }
}

fn check_version() -> Result<(), Problem> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
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

/// `6.1.0-50-amd64` is (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// CAP_NET_ADMIN, to register; CAP_SYS_ADMIN, to read modules' types and to find what others have loaded.
const RIGHTS: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)];

/// May this process register algorithms?
///
/// # Errors
/// If not, for want of which right.
pub fn check_rights() -> Result<(), Problem> {
    let missing = |found: String, hint: &str| Problem::missing("no-right", "this process", found, "root", hint);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = held.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    let lacks = |&&(_, bit): &&(&str, u32)| held & 1 << bit == 0;
    if let Some((name, _)) = RIGHTS.iter().find(lacks) {
        return Err(if rustix::process::geteuid().is_root() {
            missing(
                format!("root without {name} (a container?)"),
                "run it on the machine itself, or give the container NAME and CAP_SYS_ADMIN"
                    .replace("NAME", name)
                    .as_str(),
            )
        } else {
            missing("an ordinary user".to_owned(), "put sudo before the command")
        });
    }
    // The first process of a machine maps all users to themselves.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_initial = map.split_whitespace().eq(["0", "0", "4294967295"]) || map.is_empty();
    if is_initial { Ok(()) } else { Err(missing("root of a user namespace only".to_owned(), "run it outside of it")) }
}

fn read_btf() -> Result<Btf<'static>, Problem> {
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

/// A struct_ops program is machine code or nothing.
fn check_jit() -> Result<(), Problem> {
    const SETTING: &str = "/proc/sys/net/core/bpf_jit_enable";
    match fs::read_to_string(SETTING) {
        Ok(value) if value.trim() == "0" => {
            Err(Problem::missing("no-jit", SETTING, "0", "1", "sudo sysctl net.core.bpf_jit_enable=1"))
        }
        _ => Ok(()),
    }
}

fn modprobe(module: &str) -> Result<(), String> {
    let run = |program: &str| Command::new(program).arg(module).stdin(Stdio::null()).output();
    // Where root's PATH leads elsewhere, it is in /sbin.
    let output = run("modprobe").or_else(|_| run("/sbin/modprobe")).map_err(|error| format!("modprobe: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or("modprobe has failed").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases() {
        assert_eq!(version("6.1.0-50-cloud-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44"), Some((6, 18)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
        assert!(version("5.15.0") < Some(FLOOR));
    }
}
