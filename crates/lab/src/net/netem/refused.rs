//! What links of queue disciplines cannot do, told before anything is made.

use crate::error::Error;
use std::collections::BTreeSet;
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Loss, Queue};
use thalweg_units::{Chance, Rate, Span};

/// Largest jitter: netem draws it from 32 bits of nanoseconds.
const MOST_JITTER: Span = Span::from_secs(4);

/// Whether queue disciplines can play an experiment, on a kernel that has these.
///
/// # Errors
/// `not-on-netem`: they cannot. `no-qdisc`: the kernel lacks one.
pub(crate) fn check(experiment: &Experiment, available: &BTreeSet<String>) -> Result<(), Error> {
    of_link(&experiment.forward, "path")?;
    of_link(&experiment.reverse, "path.reverse")?;
    if experiment.forward.jitter_ns > Span::ZERO && experiment.forward.reorder > Chance::NEVER {
        return cannot("path.reorder", "needs a stage of its own, which `path.jitter` takes already");
    }
    if experiment.reverse.reorder > Chance::NEVER {
        return cannot(
            "path.reverse.reorder",
            "would hold packets back without the delay that they share a stage with",
        );
    }
    let has_up = experiment.flows.iter().any(|flow| flow.up);
    if has_up && experiment.reverse.allow_reordering && !matches!(experiment.reverse.capacity, Capacity::Unlimited) {
        return cannot("path.reverse.allow_reordering", "holds packets that go up for their transmission, in order");
    }
    for (name, host) in &experiment.hosts {
        if host.delay_jitter_ns > Span::ZERO {
            return cannot(&format!("host.{name}.delay_jitter"), "would need queue disciplines in hosts");
        }
    }
    if experiment.engine.record {
        return cannot("engine.record", "sees no single packets");
    }
    kernel_has(experiment, available)
}

fn of_link(link: &Link, key: &str) -> Result<(), Error> {
    match &link.capacity {
        Capacity::Unlimited => {}
        Capacity::Trace { .. } => {
            return cannot(&format!("{key}.trace"), "knows rates, no single opportunities to send");
        }
        Capacity::Steps { steps } if steps.iter().any(|step| step.rate_bps == Rate::ZERO) => {
            return cannot(&format!("{key}.steps"), "cannot stop a link: a rate there is 0");
        }
        Capacity::Steps { .. } => {}
        Capacity::Profile {} => return cannot(&format!("{key}.trace"), "changes no rates by a file"),
    }
    if !matches!(link.queue, Queue::Fifo {}) {
        return cannot(&format!("{key}.queue"), "has no such stage yet");
    }
    if link.policer.is_some() {
        return cannot(&format!("{key}.policer"), "has no such stage yet");
    }
    if link.aggregation.is_some() {
        return cannot(&format!("{key}.aggregation"), "has no such stage yet");
    }
    if link.profile.is_some() {
        return cannot(&format!("{key}.steps"), "changes neither delay nor loss yet");
    }
    if !matches!(link.loss, Loss::Bernoulli { ratio: Chance::NEVER }) && link.duplicate > Chance::NEVER {
        return cannot(
            &format!("{key}.duplicate"),
            "doubles packets before it loses them, so with `loss` one of two stays",
        );
    }
    if link.jitter_ns > MOST_JITTER {
        return cannot(&format!("{key}.jitter"), "has at most 4 s");
    }
    Ok(())
}

fn cannot(key: &str, why: &str) -> Result<(), Error> {
    Err(Error::new(
        "not-on-netem",
        format!("`{key}` cannot be had from the kernel's queue disciplines: netem {why}"),
        "engine.link = \"relay\" in the scenario: our own emulator can",
    ))
}

fn kernel_has(experiment: &Experiment, available: &BTreeSet<String>) -> Result<(), Error> {
    let has = |name: &str| available.contains(name);
    let lacks = |what: &str| Err(no_qdisc(what, "the kernel does not know it"));
    if !has("netem") {
        return lacks("netem");
    }
    for link in [&experiment.forward, &experiment.reverse] {
        if !matches!(link.capacity, Capacity::Steps { .. }) {
            continue;
        }
        if !has("htb") && !has("tbf") {
            return lacks("htb or tbf");
        }
        let fifo = match link.buffer {
            Buffer::Bytes { .. } => "bfifo",
            Buffer::Packets { .. } => "pfifo",
        };
        if !has(fifo) {
            return lacks(fifo);
        }
    }
    Ok(())
}

/// The kernel refused a command: it lacks a discipline, a device or a filter.
pub(super) fn by_kernel(error: Error) -> Error {
    if error.code == "no-tool" { error } else { no_qdisc("one of its parts", &error.message) }
}

fn no_qdisc(what: &str, why: &str) -> Error {
    Error::new(
        "no-qdisc",
        format!("a link of queue disciplines needs {what}: {why}"),
        "engine.link = \"relay\" in the scenario needs nothing of the kind; Debian's kernels have all of it as modules: \
         sudo modprobe -a sch_netem sch_htb sch_ingress ifb cls_u32 act_mirred",
    )
}
