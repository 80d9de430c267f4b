//! `check`: lists the requirements of `record`, `tune` and `cc`, and whether this machine meets them.

use crate::cc;
use crate::flow::cgroups::mount_point;
use crate::record::RIGHTS;
use crate::requirements::{self, release};
use crate::tune::Offer;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{MapHandle, MapType};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use thalweg_store::Problem;

const COMMANDS: [&str; 3] = ["record", "tune", "cc"];

/// This kernel setting exists if the kernel supports bpf(2).
const BPF_SETTING: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// The user is not root, and lacks the rights.
    Warning,
    Missing,
}

#[derive(Clone, Debug, Serialize)]
struct Need {
    name: &'static str,
    commands: Vec<&'static str>,
    state: State,
    found: String,
    expected: String,
    /// How to meet it; `None` if it is met.
    todo: Option<String>,
}

impl Need {
    /// Converts the result of a check to a requirement; `expected` describes the state in which it is met.
    fn of(name: &'static str, commands: &[&'static str], expected: &str, found: Result<String, Problem>) -> Need {
        let commands = commands.to_vec();
        match found {
            Ok(found) => Need { name, commands, state: State::Ok, found, expected: expected.to_owned(), todo: None },
            Err(problem) => Need {
                name,
                commands,
                state: State::Missing,
                found: problem.found,
                expected: problem.expected,
                todo: Some(problem.hint),
            },
        }
    }
}

/// Prints the requirements, and whether they are met.
///
/// # Errors
/// If a requirement is missing (a warning does not count), or `print` fails.
pub fn check(json: bool, print: &mut dyn FnMut(&str) -> Result<(), Problem>) -> Result<(), Problem> {
    let needs = needs();
    if json {
        let value = serde_json::json!({ "version": env!("CARGO_PKG_VERSION"), "needs": needs });
        print(&format!("{value:#}\n"))?;
    } else {
        print(&text(&needs))?;
    }
    let missing: Vec<&str> = needs.iter().filter(|need| need.state == State::Missing).map(|need| need.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (found, expected) =
        (format!("no {}", missing.join(", no ")), "all requirements that `thalweg-agent check` lists");
    Err(Problem::missing(
        "not-ready",
        "this machine",
        found,
        expected,
        "follow the `do:` line below each requirement marked `missing`",
    ))
}

fn needs() -> Vec<Need> {
    let rights = rights();
    let may_load = rights.iter().all(|need| need.state == State::Ok);
    let btf = requirements::read_btf();
    let types = "the kernel's type information (CONFIG_DEBUG_INFO_BTF)";
    let mut needs = vec![
        Need::of(
            "kernel",
            &COMMANDS,
            "Linux 6.1 or newer",
            requirements::check_version().map(|()| format!("Linux {}", release())),
        ),
        Need::of("eBPF", &COMMANDS, "the bpf() system call", ebpf(may_load)),
        Need::of(
            "BTF",
            &COMMANDS,
            types,
            btf.as_ref().map(|_| requirements::VMLINUX_BTF.to_owned()).map_err(Clone::clone),
        ),
    ];
    needs.extend(rights);
    needs.push(Need::of(
        "cgroup v2",
        &["record", "tune"],
        "a mounted cgroup v2",
        mount_point().map(|path| path.display().to_string()),
    ));
    // Without type information, the results of these checks are unknown.
    if let Ok(btf) = &btf {
        needs.push(Need::of(
            "sock_ops",
            &["record", "tune"],
            "BPF programs on the connections of a cgroup",
            sock_ops(btf),
        ));
        needs.push(Need::of("struct_ops", &["cc"], "congestion control in eBPF", cc::check_struct_ops(btf)));
        needs.push(Need::of("BBR", &["cc"], "BBR, which bbr_cpu, bbr_tuned and bbr_auto need", cc::find_bbr(btf)));
    }
    needs.push(Need::of(
        "algorithms",
        &["tune"],
        "the default algorithm, and at least one other that is allowed",
        arms(),
    ));
    needs
}

/// Returns the algorithms that `tune` chooses from by default, and the reasons why it leaves out others.
fn arms() -> Result<String, Problem> {
    let offer = Offer::read()?;
    let arms = offer.arms(None, false)?;
    let left_out = offer.left_out(&arms, false);
    let others = if left_out.is_empty() { String::new() } else { format!("; without {}", left_out.join("; ")) };
    Ok(format!("{}{others}", arms.join(", ")))
}

/// Checks the capabilities of each command. For an ordinary user, missing ones are not a fault of the machine.
fn rights() -> Vec<Need> {
    let of = |commands: &[&'static str], checked: Result<(), Problem>| {
        let need = Need::of("rights", commands, "root", checked.map(|()| "sufficient".to_owned()));
        let state = match need.state {
            State::Missing if !rustix::process::geteuid().is_root() => State::Warning,
            state => state,
        };
        Need { state, ..need }
    };
    vec![of(&["record", "tune"], requirements::check_rights(RIGHTS)), of(&["cc"], cc::check_rights())]
}

fn ebpf(may_load: bool) -> Result<String, Problem> {
    let missing = |found: String, hint: &str| {
        Problem::missing("no-ebpf", "this kernel", found, "eBPF (CONFIG_BPF_SYSCALL), not blocked by a sandbox", hint)
    };
    if !Path::new(BPF_SETTING).exists() {
        let hint = "boot the distribution's own kernel; in a container, mount /proc";
        return Err(missing(format!("no {BPF_SETTING}"), hint));
    }
    if !may_load {
        return Ok("supported; only root can check whether it is permitted".to_owned());
    }
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    match MapHandle::create(MapType::Array, Some("thalweg_check"), 4, 8, 1, &options) {
        Ok(_) => Ok("supported and permitted".to_owned()),
        Err(error) => Err(missing(
            format!("the kernel refuses to create a BPF map: {error}"),
            "run it on the host; in a container, allow bpf() in the seccomp profile and add CAP_BPF",
        )),
    }
}

fn sock_ops(btf: &Btf<'_>) -> Result<String, Problem> {
    // Without CONFIG_CGROUP_BPF this structure exists but is empty.
    let has_cgroups = btf.type_by_name::<Struct<'_>>("cgroup_bpf").is_some_and(|cgroup| !cgroup.is_empty());
    let has_iterator = btf.type_by_name::<Struct<'_>>("bpf_iter__tcp").is_some();
    let found = match (has_cgroups, has_iterator) {
        (true, true) => return Ok("supported, with the iterator over connections".to_owned()),
        (false, _) => "no eBPF for cgroups in its type information",
        (true, false) => "no iterator over TCP connections in its type information",
    };
    let expected = "a kernel with CONFIG_CGROUP_BPF and CONFIG_BPF_SYSCALL";
    Err(Problem::missing("no-sock-ops", "this kernel", found, expected, "boot the distribution's own kernel"))
}

fn text(needs: &[Need]) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{}", line.trim_end()).expect("a string grows");
    line(format!("{:<8} {:<11} {:<17} FOUND", "STATE", "NEED", "FOR"));
    for need in needs {
        let state = match need.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Missing => "missing",
        };
        line(format!("{state:<8} {:<11} {:<17} {}", need.name, need.commands.join(", "), need.found));
        if need.state != State::Ok {
            line(format!("{:<8} expected: {}", "", need.expected));
        }
        if let Some(todo) = &need.todo {
            line(format!("{:<8} do: {todo}", ""));
        }
    }
    for command in COMMANDS {
        let of = |state: State| {
            let lacking = needs.iter().filter(|need| need.state == state && need.commands.contains(&command));
            lacking.map(|need| need.name).collect::<Vec<_>>().join(", ")
        };
        let (missing, warning) = (of(State::Missing), of(State::Warning));
        line(match (missing.as_str(), warning.as_str()) {
            ("", "") => format!("{command}: can run"),
            ("", _) => format!("{command}: can run as root"),
            (missing, _) => format!("{command}: cannot run: {missing} missing"),
        });
    }
    text
}
