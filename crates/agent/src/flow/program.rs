//! The BPF programs of recording (bpf/flow).

use super::capacity::Capacity;
use super::cgroups::Recorded;
use super::load_config::LoadConfig;
use super::record_event::{Counters, Settings};
use crate::cc::holders::{Held, holders};
use crate::object;
use crate::watchdog::end_orphans;
use libbpf_rs::query::{LinkInfo, LinkInfoIter, LinkTypeInfo, ProgInfoIter, ProgramInfo};
use libbpf_rs::{Link, Map, MapCore, MapFlags, MapHandle, Object, ProgramAttachType, ProgramInput, ProgramType};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use thalweg_store::Problem;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/record.bpf.o"));

/// Name of the object in error messages.
const PLACE: &str = "record";

/// Names of the programs.
const FLOWS: &str = "record_flows";
const SCAN: &str = "record_scan";
const SEARCH: &str = "record_search";

/// Name of the program of bpftune that chooses algorithms (conn_tuner_sockops of src/tcp_conn_tuner.bpf.c), truncated
/// to the 15 bytes that the kernel stores.
const BPFTUNE: &str = "conn_tuner_sock";

/// CPU time of a program, as measured by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Name.
    pub name: String,
    /// Number of runs.
    pub runs: u64,
    /// Total duration of all runs.
    pub run_ns: u64,
}

/// The loaded programs.
pub struct Program {
    object: Object,
    counters: MapHandle,
}

impl Program {
    /// Loads the programs into the kernel, without attaching them.
    ///
    /// # Errors
    /// If the kernel rejects them, or the limit of file descriptors is reached.
    pub fn load(settings: &Settings, capacity: Capacity, config: &LoadConfig) -> Result<Program, Problem> {
        let mut open = object::open(OBJECT, PLACE)?;
        let settings = [(".rodata.settings", settings.bytes())];
        for (name, value) in settings.iter().chain(&config.constants) {
            let mut constants = open.maps_mut().find(|map| map.name() == *name).expect("the programs have settings");
            constants.initial_value_mut().expect("a section of data has a value").copy_from_slice(value);
        }
        let kept = [("sets", capacity.sets), ("flows", capacity.places()), ("more_flows", capacity.more())];
        for (name, entries) in kept.iter().chain(&config.entries) {
            let mut map = open.maps_mut().find(|map| map.name() == *name).expect("the programs have it");
            map.set_max_entries(*entries).expect("maps are not created yet");
        }
        let object = object::load(open, PLACE)?;
        let counters = handle(&object, "counters")?;
        Ok(Program { object, counters })
    }

    /// Attaches the program to the connections of a cgroup, as long as a process has the link open.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn attach(&self, cgroup: &Recorded) -> Result<Link, Problem> {
        let program = self.object.progs_mut().find(|program| program.name() == FLOWS).expect("it is there");
        program.attach_cgroup(cgroup.folder.as_raw_fd()).map_err(|error| {
            let place = cgroup.path.display().to_string();
            match error.kind() {
                libbpf_rs::ErrorKind::PermissionDenied => Problem::failed(
                    "cgroup-taken",
                    &place,
                    "a BPF program on this cgroup, or on one above it, that excludes other programs",
                    "only programs that permit others (BPF_F_ALLOW_MULTI)",
                    "`sudo bpftool cgroup tree` lists sock_ops programs; detach that one, or record another cgroup \
                     with --cgroup",
                ),
                _ => Problem::failed(
                    "not-attached",
                    &place,
                    error,
                    "the kernel to attach a program of type sock_ops",
                    "check that CONFIG_CGROUP_BPF is set: zgrep CGROUP_BPF /proc/config.gz",
                ),
            }
        })
    }

    /// Attaches the iterator over connections.
    ///
    /// # Errors
    /// If the kernel does not support it.
    pub fn scan(&self) -> Result<Link, Problem> {
        let program = self.object.progs_mut().find(|program| program.name() == SCAN).expect("it is there");
        program.attach().map_err(|error| {
            let expected = "an iterator over TCP connections";
            Problem::failed("no-iterator", PLACE, error, expected, "report it with the output of `uname -r`")
        })
    }

    /// Reports and removes the connections in the table that scans no longer find. Returns the number of those that
    /// did not fit into the event queue.
    ///
    /// # Errors
    /// If the kernel does not run the program.
    pub fn search(&self) -> io::Result<u32> {
        let program = self.object.progs_mut().find(|program| program.name() == SEARCH).expect("it is there");
        Ok(program.test_run(ProgramInput::default()).map_err(io::Error::other)?.return_value)
    }

    /// Opens a map of the programs.
    ///
    /// # Errors
    /// If the limit of file descriptors is reached.
    pub fn map(&self, name: &str) -> Result<MapHandle, Problem> {
        handle(&self.object, name)
    }

    /// Returns the counters of the programs.
    pub fn counters(&self) -> Counters {
        let cpus = self.counters.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        cpus.ok().flatten().map(|cpus| Counters::sum(&cpus)).unwrap_or_default()
    }

    /// Returns the CPU time of the programs so far; empty unless the kernel measures it.
    pub fn costs(&self) -> Vec<Cost> {
        let is_on = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").is_ok_and(|value| value.trim() != "0");
        if !is_on {
            return Vec::new();
        }
        let cost = |program: libbpf_rs::Program<'_>| {
            let description = description(program.as_fd().as_raw_fd());
            let run_ns = field(&description, "run_time_ns")?;
            Some(Cost {
                name: program.name().to_string_lossy().into_owned(),
                runs: field(&description, "run_cnt")?,
                run_ns,
            })
        };
        self.object.progs().filter_map(cost).collect()
    }

    /// Returns the memory of the maps in bytes; `None` if the kernel does not report it.
    pub fn maps_bytes(&self) -> Option<u64> {
        let size = |map: Map<'_>| field(&description(map.as_fd().as_raw_fd()), "memlock");
        self.object.maps().map(size).sum()
    }
}

fn handle(object: &Object, name: &str) -> Result<MapHandle, Problem> {
    let map = object.maps().find(|map| map.name() == OsStr::new(name)).expect("the programs have it");
    MapHandle::try_from(&map).map_err(|error| {
        Problem::failed("files", "this process", error, "permission to open another file", "check ulimit -n")
    })
}

/// Reads the fdinfo of an open file.
fn description(file: i32) -> String {
    fs::read_to_string(format!("/proc/self/fdinfo/{file}")).unwrap_or_default()
}

fn field(description: &str, name: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    description.lines().find_map(value)
}

/// Checks that no other recorder records the same connections. Terminates the watchdog of a recorder that has exited.
///
/// # Errors
/// If another recorder does.
pub fn check_alone(cgroup: &Recorded, mut path_of: impl FnMut(u64) -> Option<String>) -> Result<(), Problem> {
    for (link, theirs) in attached(|program| program.name == FLOWS) {
        let path = path_of(theirs);
        // If the agent that attached the link was killed, its watchdog keeps the link for the grace time.
        if !has_part_in(cgroup, theirs, &mut path_of) || end_orphans(link) {
            continue;
        }
        let by = match holders(Held::Link(link)).first() {
            Some(holder) => format!("process {}", holder.pid),
            None => "another process".to_owned(),
        };
        let found = format!("cgroup {} already recorded by {by}", path.as_deref().unwrap_or("with the same id"));
        return Err(Problem::failed(
            "already-recording",
            &cgroup.path.display().to_string(),
            found,
            "one recorder per connection",
            "stop the other recorder first (`thalweg-agent status` shows it; `tune` also records), or choose another \
             cgroup with --cgroup",
        ));
    }
    Ok(())
}

/// Checks that bpftune does not choose algorithms for the same connections.
///
/// # Errors
/// If bpftune does, or may do so because its cgroup is unknown.
pub fn check_no_other_tuner(cgroup: &Recorded, mut path_of: impl FnMut(u64) -> Option<String>) -> Result<(), Problem> {
    let is_theirs = |program: &ProgramInfo| program.ty == ProgramType::SockOps && program.name == BPFTUNE;
    if !ProgInfoIter::default().any(|program| is_theirs(&program)) {
        return Ok(());
    }
    let links = attached(is_theirs);
    // Without a link, the cgroup is unknown.
    if !links.is_empty() && !links.iter().any(|(_, theirs)| has_part_in(cgroup, *theirs, &mut path_of)) {
        return Ok(());
    }
    Err(Problem::failed(
        "another-tuner",
        &cgroup.path.display().to_string(),
        "bpftune, which also chooses the algorithms of connections (with its program conn_tuner_sockops)",
        "only one program that chooses",
        "sudo systemctl stop bpftune, or start bpftune without its tuner tcp_conn; --dry-run, which sets nothing, can \
         run beside it",
    ))
}

/// Returns the sock_ops links of the wanted programs, as pairs of link id and cgroup id.
fn attached(is_wanted: impl Fn(&ProgramInfo) -> bool) -> Vec<(u32, u64)> {
    let wanted: Vec<u32> = ProgInfoIter::default().filter(is_wanted).map(|program| program.id).collect();
    let cgroup_of = |link: LinkInfo| match &link.info {
        LinkTypeInfo::Cgroup(info) if matches!(info.attach_type, ProgramAttachType::CgroupSockOps) => {
            Some((link.id, info.cgroup_id))
        }
        _ => None,
    };
    LinkInfoIter::default().filter(|link| wanted.contains(&link.prog_id)).filter_map(cgroup_of).collect()
}

/// Returns whether a cgroup shares connections with the one that has this id.
fn has_part_in(cgroup: &Recorded, number: u64, path_of: &mut impl FnMut(u64) -> Option<String>) -> bool {
    match (path_of(cgroup.number), path_of(number)) {
        (Some(own), Some(path)) => is_within(&own, &path) || is_within(&path, &own),
        _ => number == cgroup.number,
    }
}

/// Returns whether a cgroup equals another one or is below it.
fn is_within(inner: &str, outer: &str) -> bool {
    let rest = inner.strip_prefix(outer.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_contained_in_its_ancestors() {
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
        assert!(!is_within("/ab", "/a") && !is_within("/a", "/a/b"));
    }

    #[test]
    fn kernel_fdinfo_of_a_program_is_parsed() {
        let text = "pos:\t0\nprog_type:\t13\nmemlock:\t8192\nrun_time_ns:\t4711\nrun_cnt:\t42\n";
        assert_eq!(field(text, "run_cnt"), Some(42));
        assert_eq!(field(text, "memlock"), Some(8192));
        assert_eq!(field(text, "run"), None);
    }
}
