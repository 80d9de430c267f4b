//! Rejects experiments that queue disciplines cannot emulate, before anything is created.

use super::conditions::Conditions;
use crate::error::Error;
use crate::net::probe::POLICE;
use std::collections::BTreeSet;
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Loss, Queue, Traces};
use thalweg_units::{Probability, Rate, Span};

/// Maximum jitter: netem draws it from 32 bits of nanoseconds.
const MAX_JITTER: Span = Span::from_secs(4);

/// Checks whether queue disciplines can emulate an experiment on a kernel that has the `available` ones; returns the
/// conditions of the forward and the reverse link.
///
/// # Errors
/// `not-on-netem`: they cannot. `no-qdisc`: the kernel lacks one.
pub(super) fn checked(
    experiment: &Experiment,
    traces: &Traces,
    available: &BTreeSet<String>,
) -> Result<[Conditions; 2], Error> {
    let conditions = [
        conditions(&experiment.forward, "path", traces, experiment.duration_ns)?,
        conditions(&experiment.reverse, "path.reverse", traces, experiment.duration_ns)?,
    ];
    of_link(&experiment.forward, &conditions[0], "path")?;
    of_link(&experiment.reverse, &conditions[1], "path.reverse")?;
    of_stages(experiment)?;
    for (name, host) in &experiment.hosts {
        if host.delay_jitter_ns > Span::ZERO {
            return cannot(&format!("host.{name}.delay_jitter"), "would need queue disciplines in hosts");
        }
    }
    if experiment.engine.record {
        return cannot("engine.record", "sees no single packets");
    }
    kernel_has(experiment, &conditions, available)?;
    Ok(conditions)
}

fn conditions(link: &Link, key: &str, traces: &Traces, end: Option<Span>) -> Result<Conditions, Error> {
    let source = if matches!(link.capacity, Capacity::Steps { .. } | Capacity::Unlimited) { "steps" } else { "trace" };
    let key = format!("{key}.{source}");
    if matches!(link.capacity, Capacity::Trace { .. }) {
        return cannot(&key, "knows rates, no single opportunities to send");
    }
    let conditions = Conditions::new(link, traces, end).or_else(|why| cannot(&key, why))?;
    if conditions.rates.iter().any(|(_, rate)| *rate == Rate::ZERO) {
        return cannot(&key, "cannot stop a link: a rate there is 0");
    }
    if matches!(link.capacity, Capacity::Profile {}) && conditions.rates.first().is_none_or(|(at, _)| *at > Span::ZERO)
    {
        return cannot(&key, "needs a rate from the start on");
    }
    Ok(conditions)
}

fn of_link(link: &Link, conditions: &Conditions, key: &str) -> Result<(), Error> {
    if link.ack_thinning.is_some_and(|one_in| one_in > 1) {
        return cannot(&format!("{key}.ack_thinning"), "does not distinguish acknowledgements");
    }
    let loses = !matches!(link.loss, Loss::Bernoulli { ratio: Probability::NEVER }) || !conditions.losses.is_empty();
    if loses && link.duplicate > Probability::NEVER {
        return cannot(
            &format!("{key}.duplicate"),
            "doubles packets before it loses them, so with `loss` one of two stays",
        );
    }
    if link.jitter_ns > MAX_JITTER {
        return cannot(&format!("{key}.jitter"), "has at most 4 s");
    }
    let Queue::Red { min_bytes, avpkt_bytes, burst, .. } = link.queue else { return Ok(()) };
    // tc-red(8): these parameters determine the weight of the average; otherwise `tc` finds no valid weight.
    if (u64::from(burst) + 1).saturating_mul(avpkt_bytes.0) < min_bytes.0.saturating_add(avpkt_bytes.0) {
        return cannot(&format!("{key}.queue.burst"), "has a red whose burst is at least min / avpkt");
    }
    Ok(())
}

/// Rejects stages that would have to share an interface.
fn of_stages(experiment: &Experiment) -> Result<(), Error> {
    let (forward, reverse) = (&experiment.forward, &experiment.reverse);
    let holds_back = forward.jitter_ns > Span::ZERO || forward.reorder > Probability::NEVER;
    if forward.jitter_ns > Span::ZERO && forward.reorder > Probability::NEVER {
        return cannot("path.reorder", "needs a stage of its own, which `path.jitter` takes already");
    }
    if reverse.reorder > Probability::NEVER {
        return cannot(
            "path.reverse.reorder",
            "would hold packets back without the delay that they share a stage with",
        );
    }
    let has_up = experiment.flows.iter().any(|flow| flow.up);
    if has_up && reverse.allow_reordering && !matches!(reverse.capacity, Capacity::Unlimited) {
        return cannot("path.reverse.allow_reordering", "holds packets that go up for their transmission, in order");
    }
    let is_behind = |link: &Link| link.policer.is_some_and(|policer| policer.after);
    if is_behind(forward) && (holds_back || forward.aggregation.is_some()) {
        return cannot(
            "path.policer.after",
            "needs a stage of its own, which `jitter`, `reorder` or `aggregation` takes already",
        );
    }
    if is_behind(reverse) {
        return cannot("path.reverse.policer.after", "needs a stage of its own, which the delay takes already");
    }
    let first = experiment.flows.first().map(|flow| (&flow.host, flow.extra_rtt_ns));
    let is_one = experiment.flows.iter().all(|flow| Some((&flow.host, flow.extra_rtt_ns)) == first);
    let is_background_elsewhere =
        !experiment.background.is_empty() && first.is_some_and(|(host, extra)| host != "sender" || extra > Span::ZERO);
    if reverse.aggregation.is_some() && (!is_one || is_background_elsewhere) {
        return cannot(
            "path.reverse.aggregation",
            "releases the packets of each sending host alone, and flows have different hosts or `extra_rtt`",
        );
    }
    Ok(())
}

fn cannot<T>(key: &str, why: &str) -> Result<T, Error> {
    Err(Error::new(
        "not-on-netem",
        format!("`{key}` is not supported by the kernel's queue disciplines: netem {why}"),
        "engine.link = \"relay\" in the scenario: our own emulator can",
    ))
}

fn kernel_has(
    experiment: &Experiment,
    conditions: &[Conditions; 2],
    available: &BTreeSet<String>,
) -> Result<(), Error> {
    let has = |name: &str| available.contains(name);
    let lacks = |what: &str| Err(no_qdisc(what, "the kernel does not know it"));
    if !has("netem") {
        return lacks("netem");
    }
    for (link, conditions) in [&experiment.forward, &experiment.reverse].into_iter().zip(conditions) {
        if link.policer.is_some() {
            if !has("htb") {
                return lacks("htb");
            }
            if !has(POLICE) {
                return Err(lacks_discipline("a policer needs the action", POLICE, "act_police"));
            }
        }
        if conditions.rates.is_empty() {
            continue;
        }
        if !has("htb") && !has("tbf") {
            return lacks("htb or tbf");
        }
        match (&link.queue, link.buffer) {
            (Queue::Fifo {}, Buffer::Bytes { .. }) if !has("bfifo") => return lacks("bfifo"),
            (Queue::Fifo {}, Buffer::Packets { .. }) if !has("pfifo") => return lacks("pfifo"),
            (Queue::Fifo {}, _) => {}
            (queue, _) if has(queue.name()) => {}
            (queue, _) => {
                let name = queue.name();
                return Err(lacks_discipline("the path needs the queue discipline", name, &format!("sch_{name}")));
            }
        }
    }
    Ok(())
}

/// Returns the error for a discipline or action that a scenario names and the kernel lacks.
fn lacks_discipline(who: &str, name: &str, module: &str) -> Error {
    let alternative = match name {
        "cake" => "",
        _ => "; or engine.link = \"relay\" in the scenario, or --engine sim: our own emulator has it",
    };
    let hint = if name == "dualpi2" {
        format!(
            "Linux 6.17 and later have it, with iproute2 6.17 or later: sudo modprobe {module}; for --engine uml: \
             thalweg kernel build --suite sid{alternative}"
        )
    } else {
        format!(
            "thalweg kernel build makes a kernel that has it, for --engine uml; as root, if it is a module: sudo \
             modprobe {module}{alternative}"
        )
    };
    Error::new("no-qdisc", format!("{who} `{name}`, and the kernel or `tc` does not know it"), hint)
}

/// Returns the error for a command that the kernel rejected, because it lacks a discipline, a device or a filter.
pub(super) fn by_kernel(error: Error) -> Error {
    if error.code == "no-tool" {
        return error;
    }
    match unknown_to_tc(&error.message) {
        Some(name) => old_tc(name),
        None => no_qdisc("one of its parts", &error.message),
    }
}

/// Returns the discipline that `tc` reports as unknown, if any.
fn unknown_to_tc(message: &str) -> Option<&str> {
    message.split_once("Unknown qdisc \"")?.1.split_once('"').map(|(name, _)| name)
}

fn old_tc(name: &str) -> Error {
    Error::new(
        "old-tc",
        format!("the kernel has the queue discipline `{name}`, but the program `tc` does not know it"),
        format!("put a newer `tc` (iproute2) first in PATH; `tc qdisc add {name} help` shows whether it knows {name}"),
    )
}

fn no_qdisc(what: &str, why: &str) -> Error {
    Error::new(
        "no-qdisc",
        format!("a link of queue disciplines needs {what}: {why}"),
        "engine.link = \"relay\" in the scenario needs nothing of the kind; Debian's kernels have all of it as \
         modules: sudo modprobe -a sch_netem sch_htb sch_ingress ifb cls_u32 act_mirred",
    )
}
