//! Names network namespaces by their content: `docker 3f2a9b0c1d2e`, `ip netns blue`, `unit nginx.service`, `process
//! iperf3 (pid 812)`.
//!
//! Containers and units are identified by the cgroups of processes. The caller's own cgroup is ignored, because it does
//! not distinguish namespaces.

use crate::{mounted, number, processes};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Precision of a name; the smallest value is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The machine's own namespace, or a name that was set with `ip netns`.
    Given,
    Container,
    Unit,
    Process,
    /// A name that a container runtime generated for `ip netns`.
    Generated,
}

/// Inode number of the initial PID namespace (PROC_PID_INIT_INO of the kernel). In it, processes 1 and 2 are in the
/// machine's own network namespace.
const INITIAL_PIDS: u64 = 0xefff_fffc;

const GENERATED: [&str; 2] = ["cni-", "netns-"];

/// Number of characters of a container's id that are shown, as by `docker ps`.
const SHOWN_ID: usize = 12;

/// Returns the names of all network namespaces that this process may inspect, including its own.
pub fn names() -> BTreeMap<u64, String> {
    let mut names: BTreeMap<u64, (Rank, String)> = BTreeMap::new();
    let mut add = |number: u64, rank: Rank, name: String| {
        let best = names.entry(number).or_insert_with(|| (rank, name.clone()));
        if rank < best.0 {
            *best = (rank, name);
        }
        best.0
    };
    let is_initial = number(Path::new("/proc/self/ns/pid")).is_ok_and(|pids| pids == INITIAL_PIDS);
    // Process 2 is the parent of the kernel's threads. Either may be hidden from a root user with reduced capabilities.
    let first = ["/proc/1/ns/net", "/proc/2/ns/net"].into_iter().find_map(|path| number(Path::new(path)).ok());
    if let Some(machine) = first.filter(|_| is_initial) {
        add(machine, Rank::Given, "host".to_owned());
    }
    for path in mounted() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_generated = GENERATED.iter().any(|begin| name.starts_with(begin));
        let rank = if is_generated { Rank::Generated } else { Rank::Given };
        if let Ok(number) = number(&path) {
            add(number, rank, format!("ip netns {name}"));
        }
    }
    let own_group = group(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default());
    for (pid, path) in processes() {
        let Ok(number) = number(&path.join("ns/net")) else { continue };
        let command = fs::read_to_string(path.join("comm")).unwrap_or_default();
        // The cgroup of the process is not needed if the namespace already has a more precise name.
        if add(number, Rank::Process, format!("process {} (pid {pid})", command.trim_end())) <= Rank::Container {
            continue;
        }
        let other_group = group(&fs::read_to_string(path.join("cgroup")).unwrap_or_default());
        if let Some((rank, name)) = other_group.filter(|other_group| Some(other_group) != own_group.as_ref()) {
            add(number, rank, name);
        }
    }
    names.into_iter().map(|(number, (_, name))| (number, name)).collect()
}

/// Returns the container or the unit of a process, from /proc/PID/cgroup.
fn group(cgroups: &str) -> Option<(Rank, String)> {
    // Lines are `number:controllers:path` (cgroups(7)).
    let paths: Vec<&str> = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    let container = paths.iter().find_map(|path| container(path)).map(|name| (Rank::Container, name));
    container.or_else(|| paths.iter().find_map(|path| unit(path)).map(|name| (Rank::Unit, name)))
}

/// Returns the innermost container of a path, such as `/docker/ID` or `machine-NAME.scope`.
fn container(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    parts.iter().enumerate().rev().find_map(|(at, part)| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        if let Some(name) = part.strip_prefix("lxc.payload.") {
            return Some(format!("lxc {name}"));
        }
        if let Some(name) = part.strip_prefix("machine-") {
            return Some(format!("machine {}", name.replace("\\x2d", "-")));
        }
        let before = at.checked_sub(1).map_or("", |at| parts[at]);
        if before == "lxc" {
            return Some(format!("lxc {part}"));
        }
        let (runtime, id) = part.rsplit_once(['-', ':']).unwrap_or((before, part));
        let is_id = id.len() == 64 && id.bytes().all(|letter| letter.is_ascii_hexdigit());
        is_id.then(|| format!("{} {}", runtime_name(runtime), &id[..SHOWN_ID]))
    })
}

/// Returns the runtime of a container, from the word in its cgroup.
fn runtime_name(word: &str) -> &'static str {
    match word {
        "docker" => "docker",
        "libpod" => "podman",
        "crio" => "cri-o",
        word if word.ends_with("containerd") => "containerd",
        _ => "container",
    }
}

/// Returns the innermost systemd service or scope of a path. Session scopes, `init.scope` and the user managers
/// `user@UID.service` are excluded: they do not name a service.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "systemd's unit suffixes are case-sensitive")]
fn unit(path: &str) -> Option<String> {
    let is_unit = |part: &&str| {
        part.ends_with(".service") && !part.starts_with("user@") || part.ends_with(".scope") && !is_session(part)
    };
    path.rsplit('/').find(is_unit).map(|part| format!("unit {}", part.replace("\\x2d", "-")))
}

fn is_session(part: &str) -> bool {
    part.starts_with("session-") || part == "init.scope"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const ID: &str = "3f2a9b0c1d2e4f5061728394a5b6c7d8e9f0011223344556677889900aabbccd";

    #[test]
    fn container_and_unit_names_are_parsed_from_cgroups() {
        for (path, name) in [
            (format!("/docker/{ID}"), "docker 3f2a9b0c1d2e"),
            (format!("/system.slice/docker-{ID}.scope"), "docker 3f2a9b0c1d2e"),
            (format!("/machine.slice/libpod-{ID}.scope/container"), "podman 3f2a9b0c1d2e"),
            (format!("/kubepods.slice/kubepods-pod12.slice/cri-containerd-{ID}.scope"), "containerd 3f2a9b0c1d2e"),
            (format!("/kubepods.slice/kubepods-pod12.slice/crio-{ID}.scope"), "cri-o 3f2a9b0c1d2e"),
            (format!("/kubepods/burstable/pod12/{ID}"), "container 3f2a9b0c1d2e"),
            (
                format!("/system.slice/containerd.service/kubepods-pod12.slice:cri-containerd:{ID}"),
                "containerd 3f2a9b0c1d2e",
            ),
            ("/lxc.payload.web/system.slice/nginx.service".to_owned(), "lxc web"),
            ("/machine.slice/machine-web\\x2d1.scope/payload".to_owned(), "machine web-1"),
            ("/system.slice/nginx.service".to_owned(), "unit nginx.service"),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service".to_owned(), "unit a.service"),
            ("/system.slice/run-u12.scope".to_owned(), "unit run-u12.scope"),
        ] {
            for line in [format!("0::{path}\n"), format!("9:cpu:/\n1:name=systemd:{path}\n0::/\n")] {
                assert_eq!(group(&line).map(|(_, name)| name).as_deref(), Some(name), "{line}");
            }
        }
        for path in ["/", "/user.slice/user-1000.slice/session-3.scope", "/thalweg-test-12", "/init.scope"] {
            assert_eq!(group(&format!("0::{path}\n")), None, "{path}");
        }
    }

    #[test]
    fn an_unnamed_namespace_is_named_after_its_first_process() {
        let child =
            Command::new("unshare").args(["--user", "--map-root-user", "--net", "cat"]).stdin(Stdio::piped()).spawn();
        let Ok(mut child) = child else { return eprintln!("left out: there is no unshare") };
        let own = crate::own().unwrap();
        let path = format!("/proc/{}/ns/net", child.id());
        let number = loop {
            match number(Path::new(&path)) {
                Ok(number) if number != own => break number,
                _ if child.try_wait().unwrap().is_some() => return eprintln!("left out: unshare is refused"),
                _ => std::thread::yield_now(),
            }
        };
        let expected = [format!("process cat (pid {})", child.id()), format!("process unshare (pid {})", child.id())];
        let name = names().remove(&number).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(expected.contains(&name) || name.starts_with("unit "), "{name}");
    }
}
