//! Makes namespaces, and the interfaces between them.

use crate::error::Error;
use crate::net::places::{self, HOST_INTERFACE, RECEIVER_INTERFACE, ROUTER};
use crate::net::shell::Shell;
use crate::net::{LinkKind, Place, offloads, probe, sysctl};
use std::path::Path;
use thalweg_plan::plan::Experiment;

/// An interface of the router and the host at its other end.
struct Wire<'a> {
    interface: String,
    place: &'a Place,
}

/// Everything but queue disciplines.
pub(crate) fn build(
    shell: &mut Shell,
    experiment: &Experiment,
    (senders, receiver): (&[Place], &Place),
    link: LinkKind,
) -> Result<(), Error> {
    namespaces(shell, senders.iter().chain([receiver]))?;
    let mut wires: Vec<Wire<'_>> = senders
        .iter()
        .zip(1..)
        .map(|(place, number)| Wire { interface: places::sender_interface(number), place })
        .collect();
    wires.push(Wire { interface: RECEIVER_INTERFACE.to_owned(), place: receiver });
    for wire in &wires {
        lay(shell, wire, link)?;
        if !experiment.engine.offloads {
            offloads::turn_off(shell, ROUTER, &wire.interface)?;
            offloads::turn_off(shell, &wire.place.name, HOST_INTERFACE)?;
        }
    }
    Ok(())
}

pub(crate) fn namespaces<'a>(shell: &mut Shell, hosts: impl Iterator<Item = &'a Place>) -> Result<(), Error> {
    // A file system of our own over /run, so that the names of namespaces are nobody else's.
    shell.run(None, "mount -t tmpfs thalweg /run")?;
    shell.run(None, "mkdir /run/netns")?;
    let buckets = "net.ipv4.tcp_child_ehash_entries";
    if sysctl::file(buckets).exists() && probe::has_tool("sysctl") {
        // A dump of connections walks the whole table of sockets: the machine's, of some hundred thousand buckets, which takes
        // half a millisecond, unless a namespace was made with a table of its own (Linux 6.1).
        shell.run(None, &format!("sysctl -qw {buckets}=4096"))?;
    }
    for name in hosts.map(|place| place.name.as_str()).chain([ROUTER]) {
        shell.run(None, &format!("ip netns add {name}"))?;
        shell.run(Some(name), "ip link set lo up")?;
    }
    Ok(())
}

/// A cable between the router and a host, with fixed addresses and neighbours: nobody asks for an address during an
/// experiment, and an answer cannot be lost.
fn lay(shell: &mut Shell, wire: &Wire<'_>, link: LinkKind) -> Result<(), Error> {
    let Wire { interface, place } = wire;
    let (host, router) = (place.address, places::gateway(place.address));
    let (host_mac, router_mac) = (places::mac_text(place.mac), places::mac_text(places::mac(router)));
    let name = Some(place.name.as_str());
    shell.run(
        Some(ROUTER),
        &format!(
            "ip link add {interface} mtu 1500 address {router_mac} type veth peer name {HOST_INTERFACE} mtu 1500 \
             address {host_mac} netns {}",
            place.name
        ),
    )?;
    be_silent(shell, Some(ROUTER), interface)?;
    be_silent(shell, name, HOST_INTERFACE)?;
    shell.run(Some(ROUTER), &format!("ip link set {interface} up"))?;
    shell.run(name, &format!("ip link set {HOST_INTERFACE} up"))?;
    shell.run(name, &format!("ip addr add {host}/24 dev {HOST_INTERFACE}"))?;
    shell.run(name, &format!("ip route add default via {router}"))?;
    shell.run(name, &format!("ip neigh add {router} lladdr {router_mac} dev {HOST_INTERFACE} nud permanent"))?;
    if link == LinkKind::Netem {
        shell.run(Some(ROUTER), &format!("ip addr add {router}/24 dev {interface}"))?;
        shell.run(Some(ROUTER), &format!("ip neigh add {host} lladdr {host_mac} dev {interface} nud permanent"))?;
    }
    Ok(())
}

/// Keeps IPv6 from announcing itself on an interface: its packets would be in the experiment's queues. Comes before the
/// interface is up.
pub(crate) fn be_silent(shell: &mut Shell, namespace: Option<&str>, interface: &str) -> Result<(), Error> {
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return Ok(());
    }
    shell.run(namespace, &format!("ip link set {interface} addrgenmode none"))
}
