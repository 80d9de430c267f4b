//! Finds errors in an experiment that could make the simulator panic or not terminate, and unsupported features.

use crate::error::Error;

use thalweg_plan::plan::{Capacity, Cpu, Experiment, Flow, Host, Link, Load, Loss, Repeat, Traces};
use thalweg_units::{Bytes, Rate, Span};

/// Maximum period of a CPU: with the longest cost in the shortest slice of a scenario, 10 us, times stay below 2^64 ns.
const MAX_PERIOD: Span = Span::from_secs(60);
/// Size from which on a socket buffer does not limit a flow.
const LARGEST_WINDOW: Bytes = Bytes((1 << 31) - 1);
const MAX_COST: Span = Span::from_secs(1);

/// Maximum number of connections open at once; an allocation failure would end the process.
pub(crate) const MAX_OPEN_CONNECTIONS: usize = 1_000_000;

/// Checks an experiment, except its traces, and parameters that [`Link::new`](thalweg_link::Link::new) checks.
pub(crate) fn check(experiment: &Experiment) -> Result<(), Error> {
    if experiment.flows.is_empty() && experiment.duration_ns.is_none() {
        return Err(Error::invalid("duration_ns", "null", "a duration, since no flow ends the experiment"));
    }
    if !experiment.hosts.contains_key("receiver") {
        return Err(Error::invalid("hosts", "no receiver", "a host of this name"));
    }
    for (name, host) in &experiment.hosts {
        check_host(name, host)?;
    }
    for flow in &experiment.flows {
        check_flow(flow, experiment)?;
    }
    let copies = experiment.flows.iter().map(|flow| u64::from(flow.count)).sum::<u64>();
    if copies > MAX_OPEN_CONNECTIONS as u64 {
        return Err(too_many(format!("{copies} parallel connections")));
    }
    if experiment.duration_ns.is_none() {
        for (name, link) in [("forward", &experiment.forward), ("reverse", &experiment.reverse)] {
            check_passable(name, link)?;
        }
        check_background(experiment, false)?;
        check_background(experiment, true)?;
    }
    Ok(())
}

/// Returns the error for more than [`MAX_OPEN_CONNECTIONS`] connections at once.
pub(crate) fn too_many(found: impl ToString) -> Error {
    Error::invalid("flows", found, format!("at most {MAX_OPEN_CONNECTIONS} connections open at once"))
}

fn check_host(name: &str, host: &Host) -> Result<(), Error> {
    let place = |key: &str| format!("hosts.{name}.{key}");
    if host.co_tenants > 0 {
        return Err(Error::invalid(
            place("co_tenants"),
            host.co_tenants,
            "0: the simulator restricts a CPU only by `cpu`",
        ));
    }
    if let Some(qdisc) = &host.qdisc {
        return Err(Error::invalid(place("qdisc"), qdisc, "null: simulated hosts have no queue discipline"));
    }
    if name == "receiver" && host.second_cpu {
        return Err(Error::invalid(place("second_cpu"), true, "false: a receiver always has its CPU"));
    }
    let Some(cpu) = host.cpu else { return Ok(()) };
    if name == "receiver" {
        return Err(Error::invalid(place("cpu"), "a share", "null: a receiver always has its CPU"));
    }
    if cpu.slice_ns == Span::ZERO || cpu.slice_ns > cpu.period_ns || cpu.period_ns > MAX_PERIOD {
        let found = format!("{} out of {}", cpu.slice_ns, cpu.period_ns);
        let expected = format!("a slice above 0, in a period that is at least as long and at most {MAX_PERIOD}");
        return Err(Error::invalid(place("cpu"), found, expected));
    }
    check_jitter_and_credit(&place, host.second_cpu, &cpu)?;
    for (key, cost) in [("cpu.per_packet_ns", cpu.per_packet_ns), ("cpu.per_ack_ns", cpu.per_ack_ns)] {
        if cost > MAX_COST {
            return Err(Error::invalid(place(key), cost, format!("at most {MAX_COST}")));
        }
    }
    Ok(())
}

fn check_jitter_and_credit(place: &dyn Fn(&str) -> String, second_cpu: bool, cpu: &Cpu) -> Result<(), Error> {
    let longest_ppm = u128::from(cpu.period_ns.0 - cpu.slice_ns.0) * 1_000_000 / u128::from(cpu.slice_ns.0);
    let jitter = cpu.slice_jitter_ppm;
    if jitter > 1_000_000 || (!cpu.is_whole() && u128::from(jitter) > longest_ppm) {
        let expected = "at most 1000000, with slices that fit into a period";
        return Err(Error::invalid(place("cpu.slice_jitter_ppm"), jitter, expected));
    }
    let Some(credit) = cpu.credit else { return Ok(()) };
    if second_cpu {
        return Err(Error::invalid(place("second_cpu"), true, "false: credit is modelled for one CPU"));
    }
    for (key, ppm) in [("baseline_ppm", credit.baseline_ppm), ("load_ppm", credit.load_ppm)] {
        if ppm > 1_000_000 {
            return Err(Error::invalid(place(&format!("cpu.credit.{key}")), ppm, "at most 1000000"));
        }
    }
    if credit.initial_ns > credit.max_ns {
        let expected = format!("at most max_ns, {}", credit.max_ns);
        return Err(Error::invalid(place("cpu.credit.initial_ns"), credit.initial_ns, expected));
    }
    Ok(())
}

fn check_flow(flow: &Flow, experiment: &Experiment) -> Result<(), Error> {
    let place = |key: &str| format!("flows.{}.{key}", flow.name);
    if !experiment.hosts.contains_key(&flow.host) {
        let hosts: Vec<&str> = experiment.hosts.keys().map(String::as_str).collect();
        return Err(Error::invalid(place("host"), &flow.host, format!("one of {}", hosts.join(", "))));
    }
    if let Some(file) = &flow.cc_file {
        return Err(Error::invalid(place("cc_file"), &file.path, "null: the simulator has only built-in algorithms"));
    }
    if flow.program.is_some() {
        return Err(Error::invalid(place("program"), "programs", "null: the simulator cannot run programs"));
    }
    thalweg_cc::build(&flow.cc, &flow.cc_params)
        .map_err(|error| Error::invalid(place(&error.place()), error.found(), error.expected()))?;
    if let Some(until) = thalweg_traffic::until(flow) {
        if until == flow.name || !experiment.flows.iter().any(|other| other.name == until) {
            return Err(Error::invalid(place("repeat.until"), until, "the name of another flow"));
        }
    }
    if flow.load.is_invalid() {
        return Err(Error::invalid(place("load"), "a load of 0 bytes", "at least one byte per transfer"));
    }
    check_limit(flow, experiment)?;
    let is_instant = |gap: Span| gap == Span::ZERO;
    match flow.repeat {
        Repeat::Poisson { mean_gap_ns, .. } if is_instant(mean_gap_ns) => {
            return Err(Error::invalid(place("repeat.mean_gap_ns"), 0, "a gap above zero"));
        }
        Repeat::Gap { count: Some(0), .. } | Repeat::Poisson { count: Some(0), .. } => {
            return Err(Error::invalid(place("repeat.count"), 0, "at least 1"));
        }
        _ => {}
    }
    if experiment.duration_ns.is_none() && flow.stop_ns.is_none() && is_endless(flow) {
        return Err(Error::invalid("duration_ns", "null", format!("a duration, since flow {} has no end", flow.name)));
    }
    Ok(())
}

fn is_endless(flow: &Flow) -> bool {
    let is_repeat_endless = matches!(
        flow.repeat,
        Repeat::Gap { until: None, count: None, .. } | Repeat::Poisson { until: None, count: None, .. }
    );
    flow.load.is_endless() || is_repeat_endless
}

/// Checks that the link can deliver packets, for experiments that end only when their flows complete.
fn check_passable(name: &str, link: &Link) -> Result<(), Error> {
    let expected = "a link that delivers packets, since no duration ends the experiment";
    let is_lost = match link.loss {
        Loss::Bernoulli { ratio } => ratio.as_f64() >= 1.0,
        Loss::GilbertElliott { r, loss_bad, loss_good, .. } => {
            loss_bad.as_f64() >= 1.0 && (loss_good.as_f64() >= 1.0 || r.as_f64() <= 0.0)
        }
    };
    if is_lost {
        return Err(Error::invalid(format!("{name}.loss"), "a loss of all packets", expected));
    }
    match &link.capacity {
        Capacity::Steps { steps } if steps.last().is_some_and(|step| step.rate_bps == Rate::ZERO) => {
            Err(Error::invalid(format!("{name}.capacity"), "a last rate of 0", expected))
        }
        _ => Ok(()),
    }
}

/// Checks that the rate of an upload of unlimited size is limited: without a limit, the number of packets in a round
/// trip would double without end.
fn check_limit(flow: &Flow, experiment: &Experiment) -> Result<(), Error> {
    let window = experiment.hosts["receiver"].sndbuf_max_bytes.min(experiment.hosts[&flow.host].rcvbuf_max_bytes);
    let is_limited = experiment.reverse.capacity != Capacity::Unlimited || window < LARGEST_WINDOW;
    if !flow.up || is_limited || flow.load != Load::Unlimited {
        return Ok(());
    }
    let place = format!("flows.{}.up", flow.name);
    let expected = "a rate of the reverse link, a size of the flow, or a limiting socket buffer";
    Err(Error::invalid(place, "an unlimited load on an unlimited link", expected))
}

/// Checks that UDP without a stop time leaves a part of the link's last rate to TCP, for experiments that end only when
/// TCP completes.
fn check_background(experiment: &Experiment, up: bool) -> Result<(), Error> {
    let link = if up { &experiment.reverse } else { &experiment.forward };
    let Capacity::Steps { steps } = &link.capacity else { return Ok(()) };
    let Some(last) = steps.last() else { return Ok(()) };
    let endless = experiment.background.iter().filter(|source| source.up == up && source.stop_ns.is_none());
    let udp = Rate(endless.map(|source| source.rate_bps.0).fold(0, u64::saturating_add));
    if udp < last.rate_bps {
        return Ok(());
    }
    if udp == Rate::ZERO {
        return Ok(());
    }
    let expected = format!("less than the link's last rate of {}, a stop time, or a duration", last.rate_bps);
    Err(Error::invalid("background", format!("{udp} without a stop time"), expected))
}

/// Checks that the plan has the traces that the links name.
pub(crate) fn check_traces(experiment: &Experiment, traces: &Traces) -> Result<(), Error> {
    for (name, link) in [("forward", &experiment.forward), ("reverse", &experiment.reverse)] {
        let Capacity::Trace { trace } = &link.capacity else { continue };
        if !traces.opportunities.contains_key(trace) {
            return Err(Error::invalid(format!("{name}.capacity.trace"), trace, "a name in the plan's traces"));
        }
    }
    Ok(())
}
