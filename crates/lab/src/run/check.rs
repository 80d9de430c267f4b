//! Rejects experiments that a real kernel cannot run, before anything is created.

use super::{HostSetup, Job, programs};
use crate::algorithms::{self, built_in};
use crate::error::Error;
use crate::net::{probe, qdisc};
use crate::vm::{Guests, contention};
use std::path::Path;
use thalweg_plan::plan::{Experiment, Flow, Host, Kernel, Repeat};
use thalweg_units::Span;

/// A folder that is replaced inside the namespaces of a network.
const HIDDEN: &str = "/run";

/// Checks that a plan is consistent, and that hosts can write the output of an experiment.
///
/// # Errors
/// `invalid-experiment` or `bad-place`.
pub fn check_job(job: &Job<'_>) -> Result<(), Error> {
    check_form(job.experiment, job.session.is_some())?;
    [job.capture, job.programs].into_iter().flatten().try_for_each(check_output)
}

/// Checks the requirements of an experiment's hosts and flows.
///
/// # Errors
/// If settings are inconsistent, an algorithm is unavailable, or the kernel or the system cannot do what the experiment
/// requests.
pub fn check_hosts(experiment: &Experiment, setup: HostSetup<'_>) -> Result<(), Error> {
    for (name, host) in &experiment.hosts {
        check_processor(name, host, setup.guests.is_some())?;
        check_qdisc(name, host, experiment)?;
        check_kernel(name, host, setup.guests)?;
    }
    match setup.guests {
        Some(guests) => {
            let (up, down): (Vec<&Flow>, Vec<&Flow>) = experiment.flows.iter().partition(|flow| flow.up);
            down.into_iter().try_for_each(|flow| guests.check(flow))?;
            check_ours(up.into_iter(), setup.engine)?;
        }
        None => check_ours(experiment.flows.iter(), setup.engine)?,
    }
    programs::check(experiment)
}

fn check_form(experiment: &Experiment, is_session: bool) -> Result<(), Error> {
    let exists = |host: &str| experiment.hosts.contains_key(host);
    if experiment.flows.is_empty() && experiment.duration_ns.is_none() && !is_session {
        return Err(invalid("duration_ns", "null", "a duration, since no flow ends the experiment"));
    }
    for host in ["sender", "receiver"] {
        if !exists(host) {
            return Err(invalid("hosts", &format!("no {host}"), "a host of this name"));
        }
    }
    for flow in &experiment.flows {
        check_flow(flow, experiment)?;
    }
    Ok(())
}

/// Checks that the processor of a host can be restricted as requested.
fn check_processor(name: &str, host: &Host, is_guest: bool) -> Result<(), Error> {
    let key = match (host.cpu, host.co_tenants, host.second_cpu) {
        (None, 0, false) => return Ok(()),
        (None, 0, true) => "second_cpu",
        (Some(_), 0, _) => "cpu",
        _ => "co_tenants",
    };
    let place = format!("hosts.{name}.{key}");
    if name == "receiver" {
        return Err(invalid(&place, "a restricted processor", "no restriction: a receiver always has its processor"));
    }
    if host.cpu.is_some() && host.co_tenants > 0 {
        return Err(invalid(&place, "a CPU share too", "either `cpu` or `co_tenants`"));
    }
    if host.second_cpu && host.co_tenants > 0 {
        return Err(invalid(&place, "two processors too", "one processor, shared with the processes of `co_tenants`"));
    }
    if !is_guest {
        let message = format!(
            "{place}: this engine cannot restrict the processor of a host, because its hosts share this machine's \
             processors"
        );
        return Err(Error::new("not-honoured", message, "use --engine vm"));
    }
    contention::check(host)
}

/// Checks that a host may name a queue discipline, and that its name is valid.
fn check_qdisc(name: &str, host: &Host, experiment: &Experiment) -> Result<(), Error> {
    let is_sending = name != "receiver" || experiment.has_up_traffic();
    let place = format!("hosts.{name}.qdisc");
    match &host.qdisc {
        Some(qdisc) if !is_sending => Err(invalid(&place, qdisc, "null: only hosts that send data have one")),
        Some(name) if !qdisc::is_name(name) => Err(invalid(&place, &format!("{name:?}"), "a name such as fq")),
        _ => Ok(()),
    }
}

/// Checks that a host runs on the kernel that it requests.
fn check_kernel(name: &str, host: &Host, guests: Option<&Guests>) -> Result<(), Error> {
    let Some(wanted) = host.kernel else { return Ok(()) };
    let machine = rustix::system::uname();
    let release = match guests.filter(|_| name != "receiver") {
        Some(guests) => guests.release().into(),
        None => machine.release().to_string_lossy(),
    };
    if Kernel::of_release(&release) == Some(wanted) {
        return Ok(());
    }
    let message = format!("hosts.{name}.kernel is {}, but this host runs Linux {release}", wanted.name());
    Err(Error::new(
        "not-honoured",
        message,
        format!("remove host.{name}.kernel from the scenario, or use --engine sim"),
    ))
}

fn check_flow(flow: &Flow, experiment: &Experiment) -> Result<(), Error> {
    let place = |key: &str| format!("flows.{}.{key}", flow.name);
    if !experiment.hosts.contains_key(&flow.host) {
        let names: Vec<&str> = experiment.hosts.keys().map(String::as_str).collect();
        return Err(invalid(&place("host"), &flow.host, &format!("one of {}", names.join(", "))));
    }
    if let Some(until) = thalweg_traffic::until(flow) {
        if until == flow.name || !experiment.flows.iter().any(|other| other.name == until) {
            return Err(invalid(&place("repeat.until"), until, "the name of another flow"));
        }
    }
    if flow.load.is_invalid() {
        return Err(invalid(&place("load"), "a load of 0 bytes", "at least one byte per transfer"));
    }
    match flow.repeat {
        Repeat::Poisson { mean_gap_ns: Span::ZERO, .. } => {
            Err(invalid(&place("repeat.mean_gap_ns"), "0", "a gap above zero"))
        }
        Repeat::Gap { count: Some(0), .. } | Repeat::Poisson { count: Some(0), .. } => {
            Err(invalid(&place("repeat.count"), "0", "at least 1"))
        }
        _ if experiment.duration_ns.is_none() && flow.stop_ns.is_none() && is_endless(flow) => {
            Err(invalid("duration_ns", "null", &format!("a duration, since flow {} has no end", flow.name)))
        }
        _ => Ok(()),
    }
}

/// Checks that this machine's kernel supports these flows, except those of programs.
fn check_ours<'a>(flows: impl Iterator<Item = &'a Flow>, engine: &Path) -> Result<(), Error> {
    let flows: Vec<&Flow> = flows.filter(|flow| flow.program.is_none()).collect();
    flows.iter().try_for_each(|flow| check_parameters(flow))?;
    check_algorithms(&flows, &probe::usable_algorithms()?, engine)
}

fn check_parameters(flow: &Flow) -> Result<(), Error> {
    let place = |key: &str| format!("flows.{}.{key}", flow.name);
    if let Some(file) = &flow.cc_file {
        let message = format!("{}: this engine does not load {} into this machine's kernel", place("cc"), file.path);
        let hint = if flow.up {
            "the host `receiver` sends this flow, on this machine's kernel: set direction = \"down\", and use --engine \
             vm"
        } else {
            "use --engine vm, which loads it into a guest"
        };
        return Err(Error::new("not-honoured", message, hint));
    }
    if !flow.cc_params.is_empty() {
        let names: Vec<&str> = flow.cc_params.keys().map(String::as_str).collect();
        let message = format!(
            "{}: the kernel's algorithms have no per-flow parameters, found {}",
            place("cc_params"),
            names.join(", ")
        );
        return Err(Error::new("not-honoured", message, hint_for_parameters(flow)));
    }
    Ok(())
}

/// Returns the hint about the parameters of a flow; those of an algorithm that is built into the agent can be set when
/// it is loaded.
fn hint_for_parameters(flow: &Flow) -> String {
    let settings = if built_in::is_built_in(&flow.cc) { algorithms::settings(flow).ok() } else { None };
    settings.map_or("remove cc_params from the scenario, or use --engine sim".to_owned(), |settings| {
        let set: String = settings.iter().map(|setting| format!(" --set {setting}")).collect();
        format!("use --engine vm; or remove cc_params and run: sudo thalweg-agent cc load {}{set} --keep", flow.cc)
    })
}

fn is_endless(flow: &Flow) -> bool {
    flow.load.is_endless()
        || matches!(
            flow.repeat,
            Repeat::Gap { until: None, count: None, .. } | Repeat::Poisson { until: None, count: None, .. }
        )
}

fn check_algorithms(flows: &[&Flow], usable: &[String], engine: &Path) -> Result<(), Error> {
    let Some(flow) = flows.iter().find(|flow| !usable.contains(&flow.cc)) else { return Ok(()) };
    let (name, cc, usable) = (&flow.name, &flow.cc, usable.join(", "));
    let why = if built_in::is_built_in(cc) { built_in::why_not(cc, engine) } else { None };
    if let Some(why) = why {
        let message = format!("flows.{name}.cc: this kernel has no `{cc}`: {}", why.message);
        return Err(Error::new(&why.code, message, why.hint));
    }
    let message = format!("flows.{name}.cc: this kernel does not have or does not allow `{cc}`; available: {usable}");
    let hint = if probe::algorithms().contains(cc) {
        format!(
            "sudo sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{usable} {cc}\"",
            usable = usable.replace(',', "")
        )
    } else {
        format!("choose an available one; or, if it is a module: sudo modprobe tcp_{cc}; or use --engine sim")
    };
    Err(Error::new("unknown-cc", message, hint))
}

/// Checks that the parent of `place` is neither [`HIDDEN`] nor below it.
fn check_output(place: &Path) -> Result<(), Error> {
    let folder = place.parent().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
    if !folder.starts_with(HIDDEN) {
        return Ok(());
    }
    let message = format!("hosts cannot write to {}: their namespaces have a separate {HIDDEN}", folder.display());
    Err(Error::new("bad-place", message, "choose a directory outside /run with --out"))
}

fn invalid(place: &str, found: &str, expected: &str) -> Error {
    let message = format!("{place}: found {found}, expected {expected}");
    Error::new("invalid-experiment", message, "thalweg run FILE creates a valid plan from a scenario")
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_plan::plan::Load;

    fn experiment() -> Experiment {
        serde_json::from_str(include_str!("../../../engine/tests/data/experiment.json")).unwrap()
    }

    /// Returns the key path at which a changed experiment is rejected.
    fn place(change: impl FnOnce(&mut Experiment)) -> String {
        let mut experiment = experiment();
        change(&mut experiment);
        let error = check_form(&experiment, false).unwrap_err();
        assert_eq!(error.code, "invalid-experiment");
        error.message.split(": ").next().unwrap().to_owned()
    }

    #[test]
    fn a_contradictory_experiment_is_rejected_with_the_key_path() {
        assert_eq!(check_form(&experiment(), false), Ok(()));
        assert_eq!(place(|it| it.hosts.retain(|name, _| name != "receiver")), "hosts");
        assert_eq!(place(|it| it.flows[0].host = "router".to_owned()), "flows.large.host");
        assert_eq!(place(|it| it.flows[0].load = Load::Sizes { sizes_bytes: vec![] }), "flows.large.load");
        assert_eq!(place(|it| it.flows[1].repeat = gap(Some("medium"), None)), "flows.medium.repeat.until");
        assert_eq!(place(|it| it.flows[1].repeat = gap(None, Some(0))), "flows.medium.repeat.count");
    }

    #[test]
    fn an_experiment_without_an_end_is_refused() {
        let mut finite = experiment();
        finite.duration_ns = None;
        assert_eq!(check_form(&finite, false), Ok(()), "its flows have an end");
        assert_eq!(place(|it| (it.duration_ns, it.flows[0].load) = (None, Load::Unlimited)), "duration_ns");
        assert_eq!(place(|it| (it.duration_ns, it.flows) = (None, Vec::new())), "duration_ns");
    }

    fn gap(until: Option<&str>, count: Option<u32>) -> Repeat {
        Repeat::Gap { gap_ns: Span::ZERO, until: until.map(str::to_owned), count }
    }

    #[test]
    fn a_host_qdisc_is_a_valid_name_and_is_rejected_for_receivers() {
        let mut host = experiment().hosts["sender"].clone();
        host.qdisc = Some("fq".to_owned());
        assert_eq!(check_qdisc("sender", &host, &experiment()), Ok(()));
        let error = check_qdisc("receiver", &host, &experiment()).unwrap_err();
        assert!(error.message.starts_with("hosts.receiver.qdisc: found fq, expected null"), "{error}");
        host.qdisc = Some("fq limit 10".to_owned());
        assert!(check_qdisc("sender", &host, &experiment()).unwrap_err().message.contains("found \"fq limit 10\""));
    }

    #[test]
    fn parameters_of_algorithms_are_refused() {
        let mut experiment = experiment();
        experiment.flows[0].cc_params.insert("beta".to_owned(), 0.5);
        let error = check_parameters(&experiment.flows[0]).unwrap_err();
        assert_eq!(error.code, "not-honoured");
        assert!(error.message.starts_with("flows.large.cc_params: ") && error.message.contains("beta"), "{error}");
    }

    #[test]
    fn an_unusable_algorithm_is_rejected_with_the_usable_ones() {
        let usable = ["reno", "bbr"].map(str::to_owned);
        let error =
            check_algorithms(&experiment().flows.iter().collect::<Vec<_>>(), &usable, Path::new("thalweg-engine"))
                .unwrap_err();
        assert_eq!(error.code, "unknown-cc");
        assert!(error.message.starts_with("flows.large.cc: ") && error.message.contains("`cubic`"), "{error}");
        assert!(error.message.ends_with("available: reno, bbr"), "{error}");
    }

    #[test]
    fn packet_capture_is_rejected_where_the_network_cannot_observe_packets() {
        assert_eq!(check_output(Path::new("/run/.tmp-1-1")).unwrap_err().code, "bad-place");
        assert_eq!(check_output(&std::env::temp_dir().join("runner.pcapng")), Ok(()));
    }
}
