//! This machine's own TCP, in network namespaces.

use crate::engine::{Controller, Engine, Failure, Job, Lack, Outcome, Programs, Records, Releases};
use std::path::PathBuf;
use std::sync::LazyLock;
use thalweg_lab::built_in::{self, BUILT_IN};
use thalweg_lab::net::probe;
use thalweg_lab::run::{self, HostSetup};
use thalweg_plan::plan::{self, Experiment, Traces};
use thalweg_trace::Sink;

/// The engine `kernel`.
pub struct KernelEngine;

/// Version of this engine's processing of kernel data: it changes whenever the same events would produce different
/// rows.
const RESULT_VERSION: u32 = 3;

/// Keys, besides [`SIM_ONLY`] and those with [`SCARCE_CPU`], that the simulator honours and this engine does not: a
/// flow cannot set parameters of the kernel's algorithms.
const NOT_HONOURED: &[&str] = &["flow.cc_params"];

/// Keys that only engines with a real kernel honour, partly value by value.
const OWN: &[&str] = &[
    "host.*.qdisc",
    "engine.link=auto",
    "engine.link=relay",
    "engine.link=netem",
    "engine.traffic=builtin",
    "engine.traffic=iperf3",
];

/// Keys of flows that programs generate, for engines whose hosts run programs of the machine.
pub(super) const PROGRAMS: &[&str] = &[
    "flow.program",
    "flow.program.server",
    "flow.program.client",
    "flow.program.ready",
    "flow.program.ready.output",
    "flow.program.ready.after",
    "flow.program.port",
    "flow.program.sends",
    "flow.program.qlog",
];

static HONOURS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| honours(NOT_HONOURED, &[OWN, PROGRAMS].concat(), &[&probe::release()]));

impl Engine for KernelEngine {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn about(&self) -> &'static str {
        "This machine's TCP in network namespaces, in real time, with the noise of a real machine."
    }

    fn result_version(&self) -> String {
        // Results depend on the build of the kernel, and on modules that were not built with it.
        let own = probe::own_modules().into_iter().map(|(module, build)| format!(" with {module} {build}"));
        format!("{RESULT_VERSION} on Linux {}{}", probe::version(), own.collect::<String>())
    }

    fn releases(&self) -> Option<Releases> {
        Some(Releases { senders: probe::release(), receiver: probe::release() })
    }

    fn why_not(&self) -> Option<String> {
        probe::namespaces().and_then(|()| probe::usable_algorithms()).err().map(|error| error.sentence())
    }

    fn controllers(&self) -> Vec<Controller> {
        if self.why_not().is_some() {
            return Vec::new();
        }
        probe::usable_algorithms().into_iter().flatten().map(controller).collect()
    }

    fn lacks(&self) -> Vec<Lack> {
        if self.why_not().is_some() {
            return Vec::new();
        }
        let engine = std::env::current_exe().unwrap_or_default();
        let ours = BUILT_IN.into_iter().filter_map(|name| Some(Lack::of(name, built_in::why_not(name, &engine)?)));
        let modules = probe::unloaded_algorithms().into_iter().map(|name| {
            let hint = format!("sudo modprobe tcp_{name}");
            Lack { name, why: "its module is not loaded".to_owned(), hint }
        });
        ours.chain(modules).collect()
    }

    fn honours(&self) -> &'static [&'static str] {
        &HONOURS
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn records(&self) -> Records {
        Records::Capture
    }

    fn carries(&self) -> Programs {
        Programs::All
    }

    fn check(&self, experiment: &Experiment, traces: &Traces) -> Result<(), thalweg_lab::Error> {
        let setup = HostSetup { engine: &this_program()?, is_virtual_time: false, guests: None };
        run::check(experiment, traces, setup).map(|_| ())
    }

    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        let setup = HostSetup { engine: &this_program()?, is_virtual_time: false, guests: None };
        run::run(job, setup, sink)
    }
}

/// Returns the reason why an engine with a separate kernel cannot run. If that kernel is missing, the hint is the
/// command that gets it.
pub(super) fn unavailable(error: &thalweg_lab::Error) -> String {
    if error.code == "no-kernel" { format!("{}: {}", error.message, error.hint) } else { error.sentence() }
}

/// Queue disciplines that are not available in every kernel.
const QUEUES: &[&str] = &["codel", "fq_codel", "pie", "fq_pie", "red", "fq", "dualpi2", "cake"];

/// Keys of a direction of the path that every engine with a real kernel honours, whether or not the simulator does;
/// without the prefix `path.` or `path.reverse.`.
const OF_LINKS: &[&str] = &[
    "queue.limit",
    "queue.target",
    "queue.interval",
    "queue.flows",
    "queue.quantum",
    "queue.initial_quantum",
    "queue.flow_limit",
    "queue.memory_limit",
    "queue.drop_batch",
    "queue.ecn",
    "queue.ce_threshold",
    "queue.ecn_prob",
    "queue.min",
    "queue.max",
    "queue.avpkt",
    "queue.burst",
    "queue.probability",
    "queue.tupdate",
    "queue.alpha",
    "queue.beta",
    "queue.step_thresh",
    "queue.coupling_factor",
    "queue.classic_protection",
    "queue.rtt",
    "policer",
    "policer.rate",
    "policer.burst",
    "policer.after",
    "steps.loss",
    "aggregation",
    "aggregation.interval",
    "aggregation.max_bytes",
];

/// Keys for conditions of the path and for ECN that do not belong to a direction.
const OF_PATHS: &[&str] = &["path.steps.rtt", "path.preset", "flow.ecn"];

fn of_real_paths() -> Vec<&'static str> {
    let mut keys = OF_PATHS.to_vec();
    for link in ["path", "path.reverse"] {
        let choices =
            QUEUES.iter().flat_map(|name| [format!("{link}.queue={name}"), format!("{link}.queue.name={name}")]);
        let others = OF_LINKS.iter().map(|key| format!("{link}.{key}"));
        // The leak is bounded: this runs once per engine and process.
        keys.extend(choices.chain(others).map(|key| &*key.leak()));
    }
    keys
}

/// Keys that only the simulator honours: real network cards and routers have their own settings, and `engine.offloads`
/// switches the offloads of all hosts and of the path together.
const SIM_ONLY: &[&str] =
    &["path.offloads", "path.reverse.offloads", "host.*.offloads", "host.*.interrupt_coalescing", "host.*.preset"];

/// Prefix of the keys for a host with scarce CPU, which [`honours`] excludes.
const SCARCE_CPU: &str = "host.*.cpu";

/// Returns the keys that the simulator honours, without [`SIM_ONLY`], `not_honoured` and scarce CPUs, plus those of
/// every engine with a real kernel and those in `own`. Of the kernel generations, only `releases` are included.
pub(super) fn honours(not_honoured: &[&str], own: &[&'static str], releases: &[&str]) -> Vec<&'static str> {
    let generations: Vec<&str> =
        releases.iter().filter_map(|it| plan::Kernel::of_release(it)).map(plan::Kernel::name).collect();
    let is_ours = |key: &str| key.strip_prefix("host.*.kernel=").is_none_or(|name| generations.contains(&name));
    let shared = thalweg_sim::HONOURS.iter().filter(|key| {
        !SIM_ONLY.contains(key) && !not_honoured.contains(key) && !key.starts_with(SCARCE_CPU) && is_ours(key)
    });
    let mut keys: Vec<&'static str> = shared.copied().collect();
    for key in of_real_paths().into_iter().chain(own.iter().copied()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

pub(super) fn controller(name: String) -> Controller {
    let about = match name.as_str() {
        "reno" => "NewReno, as in this kernel.",
        "cubic" => "CUBIC with HyStart, as in this kernel.",
        "bbr" => "BBR, in the version of this kernel.",
        "bbr3" => "BBR version 3, as an eBPF program.",
        "bbr_tuned" => "This kernel's BBR, with the parameters set when it was loaded.",
        "bbr_auto" => "This kernel's BBR, with a probing gain that adapts to loss and queueing.",
        _ => "A congestion control of this kernel.",
    };
    Controller { about: about.to_owned(), name, params: Vec::new() }
}

pub(super) fn cannot_run(why: &str) -> thalweg_lab::Error {
    thalweg_lab::Error::new("engine-unavailable", why, "")
}

/// Returns the path of this program.
pub(super) fn this_program() -> Result<PathBuf, thalweg_lab::Error> {
    std::env::current_exe().map_err(|error| {
        let message = format!("the path of thalweg-engine cannot be found: {error}");
        thalweg_lab::Error::new("no-program", message, "run thalweg-engine by its absolute path")
    })
}
