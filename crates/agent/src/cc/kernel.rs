//! Checks the running kernel for the features that an eBPF algorithm needs.

use crate::requirements::{self, SYS_ADMIN};
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use thalweg_store::Problem;

/// A kernel that permits this process to register eBPF algorithms.
pub struct StructOpsKernel {
    /// The kernel's BTF type information.
    pub btf: Btf<'static>,
}

impl StructOpsKernel {
    /// Inspects the running kernel.
    ///
    /// # Errors
    /// If a required feature or permission is missing.
    pub fn probe() -> Result<StructOpsKernel, Problem> {
        requirements::check_version()?;
        check_rights()?;
        let btf = requirements::read_btf()?;
        check_struct_ops(&btf)?;
        Ok(StructOpsKernel { btf })
    }

    /// Returns whether a link can hold a registration, so that it ends when its loader exits (from Linux 6.4).
    pub fn has_links(&self) -> bool {
        self.btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some()
    }

    /// Returns the number of arguments of `cong_control`: 2 up to Linux 6.9, 4 from 6.10.
    ///
    /// # Errors
    /// If the kernel's structure has an unexpected layout.
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
                "the structure of Linux 6.1 to 6.18",
                "report it with the output of `uname -r`",
            )
        })
    }

    /// Checks that the kernel has BBR and its BTF types; loads its module if necessary.
    ///
    /// # Errors
    /// If the kernel lacks BBR or its BTF types.
    pub fn need_bbr(&self) -> Result<(), Problem> {
        if has_bbr(&self.btf) {
            return Ok(());
        }
        let found = match modprobe("tcp_bbr") {
            Ok(()) if Path::new(BBR_TYPES).exists() => return Ok(()),
            Ok(()) => "the module tcp_bbr without type information (BTF)".to_owned(),
            Err(reason) => format!("no BBR, and the module tcp_bbr cannot be loaded: {reason}"),
        };
        Err(no_bbr(found))
    }
}

const BBR_TYPES: &str = "/sys/kernel/btf/tcp_bbr";

fn has_bbr(btf: &Btf<'_>) -> bool {
    btf.type_by_name::<BtfType<'_>>("bbr").is_some() || Path::new(BBR_TYPES).exists()
}

fn no_bbr(found: String) -> Problem {
    Problem::missing(
        "no-bbr",
        "this kernel",
        found,
        "BBR, built in or as the module tcp_bbr, with BTF (CONFIG_TCP_CONG_BBR, CONFIG_DEBUG_INFO_BTF_MODULES)",
        "install the modules of the running kernel (distribution kernels include tcp_bbr), then: sudo modprobe tcp_bbr",
    )
}

/// Returns a text that describes whether BBR is loaded or available as a module. Does not load the module.
///
/// # Errors
/// If it is neither.
pub fn find_bbr(btf: &Btf<'_>) -> Result<String, Problem> {
    if has_bbr(btf) {
        return Ok("built in or loaded".to_owned());
    }
    let modules = format!("/lib/modules/{}/modules.dep", requirements::release());
    match fs::read_to_string(&modules) {
        Ok(text) if text.contains("/tcp_bbr.ko") => Ok("the module tcp_bbr, which `cc load` loads".to_owned()),
        Ok(_) => Err(no_bbr(format!("no BBR in the kernel, and no tcp_bbr in {modules}"))),
        Err(error) => Err(no_bbr(format!("no BBR in the kernel, and {modules} cannot be read: {error}"))),
    }
}

/// Checks that the kernel can register eBPF algorithms (struct_ops).
///
/// # Errors
/// If the kernel cannot.
pub fn check_struct_ops(btf: &Btf<'_>) -> Result<String, Problem> {
    if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(Problem::missing(
            "no-struct-ops",
            "this kernel",
            "no struct_ops for TCP in its type information",
            "a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT",
            "boot the distribution's own kernel",
        ));
    }
    check_jit()?;
    Ok("supported".to_owned())
}

/// Checks that this process may load programs, read types of modules, and find registrations of other processes
/// (CAP_SYS_ADMIN).
///
/// # Errors
/// If [`requirements::check_rights`] fails.
pub fn check_rights() -> Result<(), Problem> {
    requirements::check_rights(&[&[SYS_ADMIN]])
}

/// Checks that the JIT compiler is on, which struct_ops programs require.
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
    // `modprobe` is in /sbin, which the PATH of root may lack.
    let output = run("modprobe").or_else(|_| run("/sbin/modprobe")).map_err(|error| format!("modprobe: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().next().unwrap_or("modprobe failed").to_owned())
}
