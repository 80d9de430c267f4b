//! Rejects experiments that queue disciplines cannot emulate, before anything is created.

use super::conditions::Conditions;
use crate::error::Error;
use crate::net::probe::POLICE;
use std::collections::BTreeSet;
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Link, Loss, Queue, Traces};
use thalweg_units::{Probability, Rate, Span};

/// Maximum jitter: netem draws it from 32 bits of nanoseconds.
const MAX_JITTER: Span = Span::from_secs(4);

/// Checks an experiment as [`super::check`] does; returns the conditions of the forward and the reverse link.
///
/// # Errors
/// The same as [`super::check`].
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
            return cannot(&format!("host.{name}.delay_jitter"), "would be needed inside the hosts");
        }
    }
    if experiment.engine.record {
        return cannot("engine.record", "cannot record single packets");
    }
    kernel_has(experiment, &conditions, available)?;
    Ok(conditions)
}

fn conditions(link: &Link, key: &str, traces: &Traces, end: Option<Span>) -> Result<Conditions, Error> {
    let source = if matches!(link.capacity, Capacity::Steps { .. } | Capacity::Unlimited) { "steps" } else { "trace" };
    let key = format!("{key}.{source}");
    if matches!(link.capacity, Capacity::Trace { .. }) {
        return cannot(&key, "supports rates, not single transmission opportunities");
    }
    let conditions = Conditions::new(link, traces, end).or_else(|why| cannot(&key, why))?;
    if conditions.rates.iter().any(|(_, rate)| *rate == Rate::ZERO) {
        return cannot(&key, "cannot stop a link, and one of the rates is 0");
    }
    if matches!(link.capacity, Capacity::Profile {}) && conditions.rates.first().is_none_or(|(at, _)| *at > Span::ZERO)
    {
        return cannot(&key, "needs a rate from the start");
    }
    Ok(conditions)
}

fn of_link(link: &Link, conditions: &Conditions, key: &str) -> Result<(), Error> {
    if link.ack_thinning.is_some_and(|one_in| one_in > 1) {
        return cannot(&format!("{key}.ack_thinning"), "cannot distinguish acknowledgements");
    }
    let loses = !matches!(link.loss, Loss::Bernoulli { ratio: Probability::NEVER }) || !conditions.losses.is_empty();
    if loses && link.duplicate > Probability::NEVER {
        return cannot(
            &format!("{key}.duplicate"),
            "duplicates packets before it drops any, so with `loss` one of the two copies may remain",
        );
    }
    if link.jitter_ns > MAX_JITTER {
        return cannot(&format!("{key}.jitter"), "supports at most 4 s");
    }
    let Queue::Red { min_bytes, avpkt_bytes, burst, .. } = link.queue else { return Ok(()) };
    // `tc` derives the weight of the average from these parameters, and finds none for a smaller burst (tc-red(8)).
    if (u64::from(burst) + 1).saturating_mul(avpkt_bytes.0) < min_bytes.0.saturating_add(avpkt_bytes.0) {
        return cannot(&format!("{key}.queue.burst"), "requires a burst of at least min / avpkt for red");
    }
    Ok(())
}

/// Rejects unsupported combinations of stages.
fn of_stages(experiment: &Experiment) -> Result<(), Error> {
    let (forward, reverse) = (&experiment.forward, &experiment.reverse);
    let holds_back = forward.jitter_ns > Span::ZERO || forward.reorder > Probability::NEVER;
    if forward.jitter_ns > Span::ZERO && forward.reorder > Probability::NEVER {
        return cannot("path.reorder", "needs a separate stage for it, which `path.jitter` already uses");
    }
    if reverse.reorder > Probability::NEVER {
        return cannot(
            "path.reverse.reorder",
            "would send all other packets without the path's delay, because both share a stage",
        );
    }
    if experiment.has_up_traffic() && reverse.allow_reordering && !matches!(reverse.capacity, Capacity::Unlimited) {
        return cannot(
            "path.reverse.allow_reordering",
            "must keep data that goes up in order, because it also models its transmission times",
        );
    }
    let is_behind = |link: &Link| link.policer.is_some_and(|policer| policer.after);
    if is_behind(forward) && (holds_back || forward.aggregation.is_some()) {
        return cannot(
            "path.policer.after",
            "needs a separate stage for it, which `jitter`, `reorder` or `aggregation` already uses",
        );
    }
    if is_behind(reverse) {
        return cannot("path.reverse.policer.after", "needs a separate stage for it, which the delay already uses");
    }
    let first = experiment.flows.first().map(|flow| (&flow.host, flow.extra_rtt_ns));
    let is_one = experiment.flows.iter().all(|flow| Some((&flow.host, flow.extra_rtt_ns)) == first);
    let is_background_elsewhere =
        !experiment.background.is_empty() && first.is_some_and(|(host, extra)| host != "sender" || extra > Span::ZERO);
    if reverse.aggregation.is_some() && (!is_one || is_background_elsewhere) {
        return cannot(
            "path.reverse.aggregation",
            "releases the packets of each sending host separately, and the flows have different hosts or `extra_rtt`",
        );
    }
    Ok(())
}

fn cannot<T>(key: &str, why: &str) -> Result<T, Error> {
    Err(Error::new(
        "not-on-netem",
        format!("`{key}` is not supported by the kernel's queue disciplines: netem {why}"),
        "set engine.link = \"relay\" in the scenario: the built-in emulator supports it",
    ))
}

fn kernel_has(
    experiment: &Experiment,
    conditions: &[Conditions; 2],
    available: &BTreeSet<String>,
) -> Result<(), Error> {
    let has = |name: &str| available.contains(name);
    let lacks = |what: &str| Err(no_qdisc(what, "the kernel does not have it"));
    if !has("netem") {
        return lacks("netem");
    }
    for (link, conditions) in [&experiment.forward, &experiment.reverse].into_iter().zip(conditions) {
        if link.policer.is_some() {
            if !has("htb") {
                return lacks("htb");
            }
            if !has(POLICE) {
                return Err(lacks_discipline("the policer needs the action", POLICE, "act_police"));
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

/// Returns the error for a queue discipline or filter action that the path needs and the kernel or tc lacks.
pub(super) fn lacks_discipline(who: &str, name: &str, module: &str) -> Error {
    let condition = match name {
        "dualpi2" => "Linux 6.17 and later have it, with iproute2 6.17 or later",
        _ => "if it is a module",
    };
    let alternative = match name {
        "cake" => "",
        _ => "; or set engine.link = \"relay\" in the scenario, or use --engine sim: both have it",
    };
    Error::new(
        "no-qdisc",
        format!("{who} `{name}`, which the kernel or `tc` does not support"),
        format!("{condition}: sudo modprobe {module}{alternative}"),
    )
}

/// Replaces the remedies of an error by those for the engine `uml`: it has no relay, and its kernel is built by a
/// command.
pub(crate) fn in_virtual_time(error: Error) -> Error {
    let needs = |name: &str| error.message.contains(&format!("`{name}`"));
    let hint = match error.code.as_str() {
        "not-on-netem" => "use --engine sim, or --engine kernel",
        "no-qdisc" if needs("dualpi2") => {
            "thalweg kernel build --suite sid builds one that has it; or use --engine sim"
        }
        "no-qdisc" if needs("cake") => "thalweg kernel build builds one that has it",
        "no-qdisc" => "thalweg kernel build builds one that has it; or use --engine sim",
        _ => return error,
    };
    Error { hint: hint.to_owned(), ..error }
}

/// Converts the error of a command that failed: to `old-tc` if `tc` does not know a discipline, else to `no-qdisc`.
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
        format!("the kernel has the queue discipline `{name}`, but the program `tc` does not support it"),
        format!(
            "put a newer `tc` (iproute2) first in PATH; `tc qdisc add {name} help` shows whether it supports {name}"
        ),
    )
}

fn no_qdisc(what: &str, why: &str) -> Error {
    Error::new(
        "no-qdisc",
        format!("a link made of queue disciplines needs {what}: {why}"),
        "set engine.link = \"relay\" in the scenario, which needs no queue disciplines; or load them (modules in \
         Debian's kernels): sudo modprobe -a sch_netem sch_htb sch_ingress ifb cls_u32 act_mirred",
    )
}
