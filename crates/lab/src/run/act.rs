//! Sends the commands of an experiment to its hosts.

use super::guest::Guest;
use super::host_processes::{HostProcesses, Kind, unexpected, unexpected_of};
use super::{Failure, HostSetup, Job, Performance, Take, programs, script};
use crate::clock::{Clock, monotonic_ns};
use crate::net::{LinkKind, Network, Place, ROUTER, probe, qdisc};
use crate::program;
use crate::protocol::{Command, Configuration, HostEvent, Outgoing, ProgramRun, Role};
use crate::stage::HostReport;
use crate::vm::{Machine, contention, host_files, processors};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thalweg_plan::plan::Experiment;
use thalweg_units::{Span, Time};

/// TCP and UDP port of receiving hosts.
const PORT: u16 = 5001;

/// Port of receiving hosts in sessions, in which the user's programs may use [`PORT`].
pub(crate) const SESSION_PORT: u16 = 65001;

/// Time between the start command and the start, in which the command must reach the hosts.
pub(super) const HEADWAY: Span = Span::from_millis(50);

/// Like [`HEADWAY`], for guests, whose processor may be off-CPU for some time.
const HEADWAY_OF_GUESTS: Span = Span::from_millis(300);

/// Timeout for hosts to prepare, without the time for servers of programs.
const PREPARE: Duration = Duration::from_secs(20);

/// Timeout without events from hosts that report their rows.
const TELL: Duration = Duration::from_secs(30);

/// Like [`PREPARE`], if senders are guests, which boot first: with an emulated processor, this may take minutes.
const BOOT: Duration = Duration::from_secs(300);

/// Hosts that are prepared.
pub struct Play<'a> {
    pub(super) processes: HostProcesses<'a>,
    senders: usize,
    /// Indices of the hosts that send flows, or run the clients of programs.
    sending: Vec<usize>,
    /// Guests that run senders, in the order of the senders; empty if senders are not guests.
    guests: Vec<Guest>,
    /// Index of the guest, by the index of the host of programs that runs in it.
    in_guests: BTreeMap<usize, usize>,
    /// Index of the guest, and a run of a client in it with times of the guest's clock.
    guest_runs: Vec<(usize, Box<ProgramRun>)>,
    /// Process id of the router, if it is a relay with real-time priority.
    relay: Option<u32>,
}

struct Started {
    machines: Vec<Machine>,
    /// Folder for the output of programs, by guest; `None` for guests without programs.
    outputs: Vec<Option<PathBuf>>,
    in_guests: BTreeMap<usize, usize>,
    relay: Option<u32>,
}

/// Waits until the hosts have prepared, and logs their settings. If senders are guests, they are the first hosts, and
/// `outputs` has an entry for each; otherwise it is empty.
fn hear_configured(
    processes: &mut HostProcesses<'_>,
    network: &mut Network,
    experiment: &Experiment,
    outputs: &[Option<PathBuf>],
) -> Result<(), Failure> {
    let mut awaited: BTreeSet<usize> = (0..processes.len()).collect();
    let are_in_guests = !outputs.is_empty();
    let has_programs = experiment.flows.iter().any(|flow| flow.program.is_some());
    let servers = if has_programs { program::max_wait(are_in_guests) } else { Duration::ZERO };
    let patience = servers + if are_in_guests { BOOT } else { PREPARE };
    let until = Instant::now() + patience;
    while !awaited.is_empty() {
        match processes.receive(Some(until))? {
            Some((number, HostEvent::Configured { sysctls, .. })) => {
                awaited.remove(&number);
                if let Some(output) = outputs.get(number) {
                    let place = &network.senders()[number];
                    let qdisc = place.qdisc.as_deref().map(qdisc::command);
                    let has_two = experiment.hosts.get(&place.host).is_some_and(|host| host.second_cpu);
                    let separate = processors::commands().into_iter().filter(|_| has_two);
                    let files = output.as_deref().map(host_files::commands).unwrap_or_default();
                    let network_of = network.inside(place).into_iter();
                    let inside: Vec<String> = network_of.chain(qdisc).chain(separate).chain(files).collect();
                    script::note_guest(network, processes.name(number), &inside, &sysctls);
                } else {
                    script::note_sysctls(network, processes.name(number), &sysctls);
                }
            }
            Some((number, event)) => return Err(unexpected(processes, number, &event).into()),
            None => return Err(processes.timeout_error(&Vec::from_iter(awaited), "configured", patience).into()),
        }
    }
    Ok(())
}

impl<'a> Play<'a> {
    /// Starts the hosts (senders, router, receiver, then the observer, or those of programs and the meter, in this
    /// order), and waits until they have prepared.
    ///
    /// # Errors
    /// If a host cannot be started or fails, or the user requested a stop.
    pub fn prepare(
        network: &mut Network,
        link: LinkKind,
        job: &Job<'a>,
        setup: HostSetup<'_>,
    ) -> Result<Play<'a>, Failure> {
        let mut roles = roles(network, link, job);
        roles.extend(programs::roles(network, job));
        let senders = network.senders().len();
        let is_sending = |role: &Role| match role {
            Role::End { sends, .. } => !sends.is_empty(),
            Role::Programs { runs, .. } => !runs.is_empty(),
            _ => false,
        };
        let sending = (0..roles.len()).filter(|number| is_sending(&roles[*number].1)).collect();
        let mut processes = HostProcesses::new(job.is_cancelled);
        let Started { machines, outputs, in_guests, relay } = start(&mut processes, network, link, job, setup, roles)?;
        hear_configured(&mut processes, network, job.experiment, &outputs)?;
        let mut guests = Vec::new();
        for (number, machine) in machines.into_iter().enumerate() {
            let host = &job.experiment.hosts[&network.senders()[number].host];
            let name = (senders > 1).then(|| network.senders()[number].host.clone());
            guests.push(Guest::meet(&mut processes, number, machine, host.clone(), name)?);
        }
        Ok(Play { guests, in_guests, guest_runs: Vec::new(), relay, processes, senders, sending })
    }

    /// Runs the experiment, and passes the events of the hosts to `take`.
    ///
    /// # Errors
    /// If a guest's processor cannot be restricted, a host fails, or the user requested a stop.
    pub fn perform(mut self, job: &Job<'_>, take: &mut Take<'_>) -> Result<Performance, Failure> {
        let relay = self.relay.filter(|_| self.guests.iter().any(Guest::is_on_a_share));
        let log = |command: &String| (job.log)(&format!("{command}\n"));
        for guest in &mut self.guests {
            guest.contend()?.iter().for_each(log);
        }
        relay.and_then(contention::yield_to).iter().for_each(log);
        let lasted = self.send(job)?;
        self.guests.iter_mut().for_each(Guest::relieve);
        let mut report = self.end(take)?;
        for guest in &mut self.guests {
            report.add(guest.leave(&mut self.processes)?);
        }
        for (guest, run) in self.guest_runs.drain(..) {
            let run = self.guests[guest].in_our_time(*run);
            take(HostEvent::ProgramRun(Box::new(run)))
                .map_err(|event| unexpected_of(self.processes.name(guest), &event))?;
        }
        let HostReport { measured, untrustworthy } = report;
        Ok(Performance { lasted, measured, untrustworthy })
    }

    /// Runs until every flow is complete, or the duration has passed. Returns the elapsed time.
    fn send(&mut self, job: &Job<'_>) -> Result<Span, Failure> {
        let experiment = job.experiment;
        let headway = if self.guests.is_empty() { HEADWAY } else { HEADWAY_OF_GUESTS };
        let start_ns = monotonic_ns() + headway.0;
        let end = experiment.duration_ns.map(|duration| Instant::now() + to_std(headway) + to_std(duration));
        for number in 0..self.processes.len() {
            let guest = self.guests.get(self.in_guests.get(&number).copied().unwrap_or(number));
            let by_its_clock = guest.map_or(start_ns, |guest| guest.at(start_ns));
            self.processes.send(number, &Command::Start { at_monotonic_ns: Some(by_its_clock) });
        }
        let mut under_way: BTreeSet<&str> = experiment.flows.iter().map(|flow| flow.name.as_str()).collect();
        // Without flows, the experiment runs for its duration.
        while experiment.flows.is_empty() || !under_way.is_empty() {
            match self.processes.receive(end)? {
                Some((number, HostEvent::Over { flow })) if self.sending.contains(&number) => {
                    under_way.remove(flow.as_str());
                    for other in self.sending.iter().filter(|other| **other != number) {
                        self.processes.send(*other, &Command::Over { flow: flow.clone() });
                    }
                }
                Some((number, event)) => return Err(unexpected(&self.processes, number, &event).into()),
                None => break,
            }
        }
        let lasted = Clock::starting_at(start_ns).now().since(Time::ZERO);
        Ok(experiment.duration_ns.map_or(lasted, |duration| lasted.min(duration)))
    }

    /// Stops the hosts and collects their reports: first the meter or the observer, then programs, senders, the router,
    /// and the receiver.
    pub(super) fn end(&mut self, take: &mut Take<'_>) -> Result<HostReport, Failure> {
        let mut report = HostReport::default();
        let (router, receiver) = (self.senders, self.senders + 1);
        // The meter stops first, so that it does not measure packets of programs that are being terminated; programs
        // stop while the path still exists.
        let beside: Vec<usize> = (receiver + 1..self.processes.len()).collect();
        let (meter, programs) =
            beside.split_last().map_or((Vec::new(), Vec::new()), |(meter, rest)| (vec![*meter], rest.to_vec()));
        for together in [meter, programs, (0..self.senders).collect(), vec![router], vec![receiver]] {
            for number in &together {
                self.processes.send(*number, &Command::Stop);
            }
            let mut awaited = BTreeSet::from_iter(together);
            while !awaited.is_empty() {
                match self.processes.receive_within(TELL)? {
                    Some((number, HostEvent::Stopped { measured, untrustworthy })) => {
                        awaited.remove(&number);
                        report.add(HostReport { measured, untrustworthy });
                    }
                    // Flows may still complete before the hosts receive `stop`.
                    Some((_, HostEvent::Over { .. })) => {}
                    Some((number, HostEvent::ProgramRun(run))) if self.in_guests.contains_key(&number) => {
                        self.guest_runs.push((self.in_guests[&number], run));
                    }
                    Some((number, event)) => {
                        let name = self.processes.name(number);
                        take(event).map_err(|event| unexpected_of(name, &event))?;
                    }
                    None => return Err(self.processes.timeout_error(&Vec::from_iter(awaited), "stopped", TELL).into()),
                }
            }
        }
        Ok(report)
    }
}

fn start(
    processes: &mut HostProcesses<'_>,
    network: &mut Network,
    link: LinkKind,
    job: &Job<'_>,
    setup: HostSetup<'_>,
    roles: Vec<(String, Role)>,
) -> Result<Started, Failure> {
    let mut started = Started { machines: Vec::new(), outputs: Vec::new(), in_guests: BTreeMap::new(), relay: None };
    let senders = network.senders().len();
    let folder_of = |role: &Role| if let Role::Programs { folder, .. } = role { Some(folder.clone()) } else { None };
    let folders: BTreeMap<String, PathBuf> =
        roles.iter().filter_map(|(name, role)| Some((name.clone(), folder_of(role)?))).collect();
    // By name of the host: the index of the guest, and the socket to the host of programs in it.
    let mut sockets = BTreeMap::new();
    let command = [setup.engine.as_os_str().to_owned(), OsString::from("host")];
    for (number, (name, mut role)) in roles.into_iter().enumerate() {
        let is_router = matches!(role, Role::Relay { .. } | Role::Qdiscs { .. });
        let is_realtime = is_router && probe::is_realtime_allowed();
        // Hosts of programs, the meter and the observer share the namespace of a host that applies the settings.
        let is_beside = number > senders + 1;
        let sysctls = if is_beside { BTreeMap::new() } else { network.sysctls(&name) };
        let in_guest = if is_beside { sockets.remove(&name) } else { None };
        if let Some((guest, socket)) = in_guest {
            processes.add_in_guest(&name, socket, guest)?;
            if let Role::Programs { in_guest, .. } = &mut role {
                *in_guest = true;
            }
            started.in_guests.insert(number, guest);
        } else if let Some(guests) = setup.guests.filter(|_| number < senders) {
            let place = network.senders()[number].clone();
            let output = folders.get(&name).cloned();
            let (child, machine, socket) = guests.start(network, &place, job.experiment, output.as_deref())?;
            started.machines.push(machine);
            started.outputs.push(output);
            sockets.extend(socket.map(|socket| (name.clone(), (number, socket))));
            processes.add(&name, child, Kind::Guest)?;
        } else {
            let child = network.spawn(&name, &command, is_realtime)?;
            if is_realtime && link == LinkKind::Relay {
                started.relay = Some(child.id());
            }
            processes.add(&name, child, Kind::Process)?;
        }
        let configuration = Configuration { sysctls, experiment: job.experiment.clone(), role };
        processes.send(number, &Command::Configure(Box::new(configuration)));
    }
    Ok(started)
}

/// Returns the namespaces and roles of the hosts: senders, router, receiver, and in a session the observer.
fn roles(network: &Network, link: LinkKind, job: &Job<'_>) -> Vec<(String, Role)> {
    let receiver = network.receiver();
    let background_host = network.senders().iter().find(|place| place.background).map(|place| place.address);
    let goes = |up: bool| job.experiment.background.iter().any(|source| source.up == up);
    let is_idle = job.session.is_some() && job.experiment.background.is_empty();
    let end = |place: &Place| {
        let to = |flow: &usize| {
            let host = network.senders().iter().find(|other| other.receives.contains(flow));
            let to = if place.is_receiver() { host.map(|host| host.address) } else { Some(receiver.address) };
            Some(Outgoing { flow: *flow, to: to? })
        };
        let to_background = if place.is_receiver() { background_host } else { Some(receiver.address) };
        let is_own = |flow: &&usize| job.experiment.flows[**flow].program.is_none();
        let listens =
            (place.is_receiver() && !is_idle) || !place.receives.is_empty() || (place.background && goes(true));
        let role = Role::End {
            host: place.host.clone(),
            sends: place.flows.iter().filter(is_own).filter_map(to).collect(),
            background: to_background.filter(|_| place.background && goes(place.is_receiver())),
            receives: listens.then(|| place.receives.iter().filter(is_own).copied().collect()),
            port: if job.session.is_some() { SESSION_PORT } else { PORT },
        };
        (place.name.clone(), role)
    };
    let router = match link {
        LinkKind::Relay => {
            let (senders, receiver) = network.relay_ports();
            let capture = job.capture.map(absolute);
            Role::Relay { senders, receiver, traces: job.traces.clone(), capture }
        }
        LinkKind::Netem => Role::Qdiscs { watch: network.qdiscs() },
    };
    let observer = job.session.map(|_| {
        let hosts = network.senders().iter().chain([receiver]).map(|place| place.name.clone()).collect();
        (ROUTER.to_owned(), Role::Observer { hosts, receiver: receiver.address })
    });
    let hosts = network.senders().iter().map(end).chain([(ROUTER.to_owned(), router), end(receiver)]);
    hosts.chain(observer).collect()
}

/// Returns an absolute path, because hosts may have another working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn to_std(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}
