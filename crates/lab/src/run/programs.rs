//! The roles of the hosts that run the programs of an experiment, and of the meter.

use super::Job;
use crate::error::Error;
use crate::net::{HOST_INTERFACE, Network, Place, ROUTER};
use crate::protocol::{MeterPoint, Outgoing, Role, Served};
use std::net::SocketAddr;
use std::path::PathBuf;
use thalweg_plan::plan::{Experiment, Flow, Program, Repeat};

/// Rejects clients that arrive at random, and ports that are invalid or shared by two copies.
///
/// # Errors
/// `invalid-experiment`.
pub(super) fn check(experiment: &Experiment) -> Result<(), Error> {
    let invalid = |place: String, message: String| {
        let hint = "thalweg run FILE creates a valid plan from a scenario";
        Err(Error::new("invalid-experiment", format!("{place}: {message}"), hint))
    };
    let mut taken = std::collections::BTreeSet::new();
    for (flow, program) in with_programs(experiment) {
        if matches!(flow.repeat, Repeat::Poisson { .. }) {
            return invalid(
                format!("flows.{}.repeat", flow.name),
                "clients of programs cannot arrive at random: they run one after another".to_owned(),
            );
        }
        for copy in 0..flow.count {
            let port = u32::from(program.port) + copy;
            if !(1..=u32::from(u16::MAX)).contains(&port) || !taken.insert(port) {
                let message = format!("found {port}, expected a separate port for every copy");
                return invalid(format!("flows.{}.program.port", flow.name), message);
            }
        }
    }
    Ok(())
}

/// Returns the namespaces and roles of the hosts of programs, followed by the meter; empty if there are no programs.
pub(super) fn roles(network: &Network, job: &Job<'_>) -> Vec<(String, Role)> {
    let Some(folder) = job.programs.filter(|_| job.experiment.has_programs()) else { return Vec::new() };
    // Resolves symbolic links, because a guest would resolve them differently.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let receiver = network.receiver();
    let ends: Vec<(usize, Ends<'_>)> = (0..job.experiment.flows.len())
        .filter_map(|flow| Some((flow, ends(network, flow, &job.experiment.flows[flow])?)))
        .collect();
    let mut roles: Vec<(String, Role)> = Vec::new();
    for place in network.senders().iter().chain([receiver]) {
        let outgoing = |flow: usize, server: &Place| Outgoing { flow, to: server.address };
        let at = |host: &Place| host.name == place.name;
        let serves = ends.iter().filter(|(_, ends)| at(ends.server));
        let runs = ends.iter().filter(|(_, ends)| at(ends.client));
        let serves: Vec<Outgoing> = serves.map(|(flow, ends)| outgoing(*flow, ends.server)).collect();
        let runs: Vec<Outgoing> = runs.map(|(flow, ends)| outgoing(*flow, ends.server)).collect();
        if !serves.is_empty() || !runs.is_empty() {
            roles.push((place.name.clone(), Role::Programs { serves, runs, folder: folder.clone(), in_guest: false }));
        }
    }
    let points = roles.iter().map(|(name, _)| MeterPoint {
        namespace: PathBuf::from(format!("/run/netns/{name}")),
        interface: HOST_INTERFACE.to_owned(),
    });
    let role = Role::Meter { points: points.collect(), servers: served(&ends, job.experiment) };
    roles.push((ROUTER.to_owned(), role));
    roles
}

struct Ends<'a> {
    server: &'a Place,
    client: &'a Place,
}

/// Returns the hosts of a flow's programs; `None` if the flow has no programs.
fn ends<'a>(network: &'a Network, index: usize, flow: &Flow) -> Option<Ends<'a>> {
    let program = flow.program.as_ref()?;
    let host =
        network.senders().iter().find(|place| place.flows.contains(&index) || place.receives.contains(&index))?;
    let (sender, receiver) = if flow.up { (network.receiver(), host) } else { (host, network.receiver()) };
    let (server, client) = if program.client_sends { (receiver, sender) } else { (sender, receiver) };
    Some(Ends { server, client })
}

fn served(ends: &[(usize, Ends<'_>)], experiment: &Experiment) -> Vec<Served> {
    let copies = |(index, ends): &(usize, Ends<'_>)| {
        let (index, address) = (*index, ends.server.address);
        let flow = &experiment.flows[index];
        let program = flow.program.clone();
        (0..flow.count).filter_map(move |copy| {
            let program = program.as_ref()?;
            let address = SocketAddr::new(address, program.port + copy as u16);
            Some(Served { flow: index, copy: copy.into(), address, client_sends: program.client_sends })
        })
    };
    ends.iter().flat_map(copies).collect()
}

fn with_programs(experiment: &Experiment) -> impl Iterator<Item = (&Flow, &Program)> {
    experiment.flows.iter().filter_map(|flow| Some((flow, flow.program.as_ref()?)))
}
