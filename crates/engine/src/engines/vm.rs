//! The TCP of another kernel, in virtual machines: the hosts of the engine `kernel`, except that senders are guests.

use super::kernel::{PROGRAMS, cannot_run, controller, honours, this_program, unavailable};
use crate::engine::{Controller, Engine, Failure, Job, Lack, Outcome, Records, Releases};
use std::sync::LazyLock;
use thalweg_lab::built_in::{BBR_AUTO, BBR_CPU, BBR_TUNED, BBR3, BUILT_IN};
use thalweg_lab::net::probe;
use thalweg_lab::run::{self, HostSetup};
use thalweg_lab::vm::Guests;
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;

/// The engine `vm`.
pub struct VmEngine;

/// Version of this engine's processing of kernel data: it changes whenever the same events would produce different
/// rows.
const RESULT_VERSION: u32 = 2;

/// Keys that `honours` adds for this engine, partly value by value. Other keys of a CPU are omitted: packet costs are
/// real, and Linux does not support jitter and credit of a CPU.
const OWN: &[&str] = &[
    "flow.cc.name",
    "flow.cc.bpf",
    "flow.cc.module",
    "host.*.cpu_share",
    "host.*.cpu_slice",
    "host.*.cpu_model",
    "host.*.cpu_model=slices",
    "host.*.cpus",
    "host.*.co_tenants",
    "host.*.qdisc",
    "engine.link=auto",
    "engine.link=relay",
    "engine.link=netem",
    "engine.traffic=builtin",
    "engine.traffic=iperf3",
];

static HONOURS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let guests = FOUND.as_ref().map_or("", Guests::release);
    honours(&[], &[OWN, PROGRAMS].concat(), &[guests, &probe::release()])
});

/// The guests, or the reason why this machine cannot run them.
static FOUND: LazyLock<Result<Guests, String>> = LazyLock::new(|| {
    let engine = std::env::current_exe().map_err(|error| format!("thalweg-engine cannot be found: {error}"))?;
    Guests::open(&engine).map_err(|error| unavailable(&error))
});

/// Returns the description of a congestion control of the guests. Algorithms of the agent have those parameters of the
/// simulator that apply.
fn guests_controller(name: String) -> Controller {
    // The simulator's algorithm with the same parameters, and the subset of parameters that applies.
    let (of, only, about) = match name.as_str() {
        BBR_CPU => ("bbr_cpu", Some("rule"), "This kernel's BBR, for senders that share a CPU."),
        BBR3 => ("bbr3", Some("cpu_rule"), "BBR version 3, as an eBPF program."),
        BBR_TUNED => ("bbr", None, "This kernel's BBR, with adjustable parameters."),
        BBR_AUTO => ("bbr_auto", None, "This kernel's BBR, with a probing gain that adapts to loss and queueing."),
        _ => return controller(name),
    };
    let entry = thalweg_cc::CATALOG.iter().find(|entry| entry.name == of).expect("the simulator has it");
    let params = entry.params.iter().filter(|param| only.is_none_or(|only| param.name == only)).collect();
    Controller { about: about.to_owned(), name, params }
}

impl Engine for VmEngine {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn about(&self) -> &'static str {
        "The TCP of another Linux kernel: the sending hosts run in virtual machines, in real time."
    }

    fn result_version(&self) -> String {
        // Receiver and path run on the machine's kernel.
        let guests = FOUND.as_ref().map_or_else(|_| "no kernel".to_owned(), Guests::version);
        format!("{RESULT_VERSION} on Linux {guests}, to Linux {}", probe::version())
    }

    fn releases(&self) -> Option<Releases> {
        Some(Releases { senders: FOUND.as_ref().ok()?.release().to_owned(), receiver: probe::release() })
    }

    fn why_not(&self) -> Option<String> {
        FOUND.as_ref().err().cloned()
    }

    fn controllers(&self) -> Vec<Controller> {
        let names = FOUND.as_ref().map_or(&[][..], Guests::algorithms);
        names.iter().cloned().map(guests_controller).collect()
    }

    fn lacks(&self) -> Vec<Lack> {
        let Ok(guests) = FOUND.as_ref() else { return Vec::new() };
        BUILT_IN.into_iter().filter_map(|name| Some(Lack::of(name, guests.why_not(name)?))).collect()
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

    fn check(&self, experiment: &Experiment, traces: &Traces) -> Result<(), thalweg_lab::Error> {
        let guests = FOUND.as_ref().map_err(|why| cannot_run(why))?;
        let setup = HostSetup { engine: &this_program()?, is_virtual_time: false, guests: Some(guests) };
        run::check(experiment, traces, setup).map(|_| ())
    }

    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        let guests = FOUND.as_ref().map_err(|why| cannot_run(why))?;
        let setup = HostSetup { engine: &this_program()?, is_virtual_time: false, guests: Some(guests) };
        run::run(job, setup, sink)
    }
}
