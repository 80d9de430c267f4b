//! This machine's own TCP, in network namespaces.

use crate::engine::{Controller, Engine, Failure, Job, Lack, Outcome};
use std::path::PathBuf;
use std::sync::LazyLock;
use thalweg_lab::bbr_cpu::{self, BBR_CPU};
use thalweg_lab::net::probe;
use thalweg_lab::run::{self, HostSetup};
use thalweg_plan::plan;
use thalweg_trace::Sink;

/// The engine `kernel`.
pub struct KernelEngine;

/// Version of what this engine makes of what the kernel does: it changes whenever the rows of the same events would.
const RESULT_VERSION: u32 = 2;

/// Keys that the simulator honours and a kernel does not: its algorithms have no parameters that a flow could set, and all
/// hosts share the machine's CPUs.
const NOT_HONOURED: &[&str] =
    &["flow.cc_params", "host.*.cpu_share", "host.*.cpu_slice", "host.*.cpu_per_packet", "host.*.cpu_per_ack"];

/// Keys that only engines with a real kernel honour value by value.
const OWN: &[&str] = &[
    "host.*.qdisc",
    "engine.link=auto",
    "engine.link=relay",
    "engine.link=netem",
    "engine.traffic=builtin",
    "engine.traffic=iperf3",
];

static HONOURS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let machine = rustix::system::uname();
    honours(NOT_HONOURED, OWN, &[&machine.release().to_string_lossy()])
});

impl Engine for KernelEngine {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn about(&self) -> &'static str {
        "This machine's own TCP in network namespaces: real time, real noise, the truth about this kernel."
    }

    fn result_version(&self) -> String {
        // Another kernel gives other tables.
        format!("{RESULT_VERSION} on Linux {}", rustix::system::uname().release().to_string_lossy())
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
        bbr_cpu::why_not(&engine).into_iter().map(|why| Lack::of(BBR_CPU, why)).collect()
    }

    fn honours(&self) -> &'static [&'static str] {
        &HONOURS
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn records(&self) -> bool {
        true
    }

    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        let setup = HostSetup { engine: &this_program()?, is_virtual_time: false, guests: None };
        run::run(job, setup, sink)
    }
}

/// Why an engine with a kernel of its own cannot run. Where that kernel is what is missing, the command that gets it says all.
pub(super) fn unavailable(error: &thalweg_lab::Error) -> String {
    if error.code == "no-kernel" { format!("{}: {}", error.message, error.hint) } else { error.sentence() }
}

/// What the simulator honours but for `not_honoured`, and what only this engine does. Of the generations of kernels, those of
/// its own `releases`.
pub(super) fn honours(not_honoured: &[&str], own: &[&'static str], releases: &[&str]) -> Vec<&'static str> {
    let ours: Vec<&str> =
        releases.iter().filter_map(|it| plan::Kernel::of_release(it)).map(plan::Kernel::name).collect();
    let is_ours = |key: &str| key.strip_prefix("host.*.kernel=").is_none_or(|name| ours.contains(&name));
    let shared = thalweg_sim::HONOURS.iter().filter(|key| !not_honoured.contains(key) && is_ours(key));
    shared.chain(own).copied().collect()
}

/// A congestion control of a real kernel.
pub(super) fn controller(name: String) -> Controller {
    let about = match name.as_str() {
        "reno" => "NewReno, as in this kernel.",
        "cubic" => "CUBIC with HyStart, as in this kernel.",
        "bbr" => "BBR, in the version of this kernel.",
        _ => "A congestion control of this kernel.",
    };
    Controller { about: about.to_owned(), name, params: Vec::new() }
}

/// Why an experiment fails on an engine that cannot run.
pub(super) fn cannot_run(why: &str) -> Failure {
    thalweg_lab::Error::new("engine-unavailable", why, "").into()
}

/// The program that plays hosts: ourselves.
pub(super) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        let message = format!("the path of thalweg-engine cannot be found: {error}");
        thalweg_lab::Error::new("no-program", message, "call it by its whole path").into()
    })
}
