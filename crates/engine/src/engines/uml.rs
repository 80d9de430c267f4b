//! Linux TCP in virtual time: the hosts of the engine `kernel`, inside a user-mode Linux kernel that was built for it.

use super::kernel::{PROGRAMS, cannot_run, controller, honours, this_program, unavailable};
use crate::engine::{Controller, Engine, Failure, Job, Outcome, Programs, Releases};
use std::sync::LazyLock;
use thalweg_lab::guest::{self, Traits, UmlKernel};
use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;

/// The engine `uml`.
pub struct UmlEngine;

/// Version of this engine's processing of kernel data: it changes whenever the same events would produce different
/// rows.
const RESULT_VERSION: u32 = 5;

/// Keys that the simulator honours and this engine does not, besides those that no real kernel honours. The path
/// consists of queue disciplines, which have rates and no single delivery opportunities.
const NOT_HONOURED: &[&str] = &[
    "flow.cc_params",
    "path.trace=mahimahi",
    "path.reverse.trace=mahimahi",
    "host.*.delay_jitter",
    "engine.record",
    "path.reverse.ack_thinning",
];

/// Keys that only engines with a real kernel honour, partly value by value.
const OWN: &[&str] =
    &["host.*.qdisc", "engine.link=auto", "engine.link=netem", "engine.traffic=builtin", "engine.traffic=iperf3"];

static HONOURS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let release = FOUND.as_ref().map_or("", |(kernel, _)| &kernel.release);
    honours(NOT_HONOURED, &[OWN, PROGRAMS].concat(), &[release])
});

/// The kernel and its traits, or the reason why there is no usable kernel.
static FOUND: LazyLock<Result<(UmlKernel, Traits), String>> = LazyLock::new(|| {
    let find = || {
        let kernel = UmlKernel::find()?;
        let engine = std::env::current_exe().map_err(|error| {
            thalweg_lab::Error::new(
                "no-program",
                format!("thalweg-engine cannot be found: {error}"),
                "run thalweg-engine by its absolute path",
            )
        })?;
        let traits = kernel.traits(|kernel| guest::probe(kernel, &engine))?;
        Ok((kernel, traits))
    };
    find().map_err(|error: thalweg_lab::Error| unavailable(&error))
});

impl Engine for UmlEngine {
    fn name(&self) -> &'static str {
        "uml"
    }

    fn about(&self) -> &'static str {
        "Linux TCP in a user-mode kernel, in virtual time: no noise, no root; the kernel must be built first."
    }

    fn result_version(&self) -> String {
        let kernel = FOUND.as_ref().map_or_else(|_| "no kernel".to_owned(), |(kernel, _)| kernel.version());
        format!("{RESULT_VERSION} on Linux {kernel}")
    }

    fn releases(&self) -> Option<Releases> {
        let (kernel, _) = FOUND.as_ref().ok()?;
        Some(Releases { senders: kernel.release.clone(), receiver: kernel.release.clone() })
    }

    fn why_not(&self) -> Option<String> {
        FOUND.as_ref().err().cloned()
    }

    fn controllers(&self) -> Vec<Controller> {
        let names = FOUND.as_ref().map_or(&[][..], |(_, traits)| &traits.algorithms);
        names.iter().cloned().map(controller).collect()
    }

    fn honours(&self) -> &'static [&'static str] {
        &HONOURS
    }

    fn carries(&self) -> Programs {
        Programs::Commands
    }

    fn check(&self, experiment: &Experiment, traces: &Traces) -> Result<(), thalweg_lab::Error> {
        let (_, traits) = FOUND.as_ref().map_err(|why| cannot_run(why))?;
        guest::check(traits, experiment, traces)
    }

    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        let (kernel, traits) = FOUND.as_ref().map_err(|why| cannot_run(why))?;
        guest::run(kernel, traits, job, &this_program()?, sink)
    }
}
