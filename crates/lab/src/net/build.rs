//! Creates namespaces, and the interfaces between them.

use crate::error::Error;
use crate::net::places::{self, HOST_INTERFACE, RECEIVER_INTERFACE, ROUTER};
use crate::net::shell::Shell;
use crate::net::sys::Act;
use crate::net::{GUEST_TAP, LinkKind, Place, Seat, offloads, qdisc, sysctl};
use std::net::IpAddr;
use std::path::Path;
use thalweg_plan::plan::Experiment;

/// Command that brings up the loopback interface of a namespace.
pub(crate) const LOOPBACK: &str = "ip link set lo up";

const BRIDGE: &str = "bridge";

/// An interface of the router, and the host at its other end.
struct Wire<'a> {
    interface: String,
    place: &'a Place,
    seat: Seat,
}

/// Creates the network, except the router's queue disciplines.
pub(crate) fn build(
    shell: &mut Shell,
    experiment: &Experiment,
    (senders, receiver): (&[Place], &Place),
    (link, seat): (LinkKind, Seat),
) -> Result<(), Error> {
    namespaces(shell, senders.iter().chain([receiver]))?;
    let mut wires: Vec<Wire<'_>> = senders
        .iter()
        .zip(1..)
        .map(|(place, number)| Wire { interface: places::sender_interface(number), place, seat })
        .collect();
    wires.push(Wire { interface: RECEIVER_INTERFACE.to_owned(), place: receiver, seat: Seat::Namespace });
    // Commands are grouped by namespace, because the commands of a program in one namespace need only one process.
    let mut router = vec![LOOPBACK.to_owned()];
    wires.iter().for_each(|wire| lay(&mut router, wire, link));
    shell.run_all(Some(ROUTER), &router)?;
    for wire in &wires {
        let commands = match wire.seat {
            Seat::Namespace => host_commands(wire.place),
            Seat::Guest => bridge(),
        };
        shell.run_all(Some(&wire.place.name), &commands)?;
        if let (Seat::Namespace, Some(name)) = (wire.seat, &wire.place.qdisc) {
            qdisc::set(shell, wire.place, name)?;
        }
    }
    if !experiment.engine.offloads {
        let at_router = wires.iter().map(|wire| (ROUTER, wire.interface.as_str()));
        let at_hosts = wires.iter().map(|wire| (wire.place.name.as_str(), HOST_INTERFACE));
        offloads::turn_off(shell, &at_router.chain(at_hosts).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Creates the namespaces of these hosts and of the router.
pub(crate) fn namespaces<'a>(shell: &mut Shell, hosts: impl Iterator<Item = &'a Place>) -> Result<(), Error> {
    let mut acts = vec![
        // Mounts a separate file system over /run, so that the names of namespaces cannot collide.
        ("mount -t tmpfs thalweg /run", Act::Cover(c"/run".into(), c"thalweg".into())),
        ("mkdir /run/netns", Act::MakeFolder(c"/run/netns".into())),
    ];
    if sysctl::file("net.ipv4.tcp_child_ehash_entries").exists() {
        // A dump of connections scans the entire socket table, which can be large. From Linux 6.1 on, a namespace can
        // have its own smaller table.
        let file = c"/proc/sys/net/ipv4/tcp_child_ehash_entries".into();
        acts.push(("sysctl -qw net.ipv4.tcp_child_ehash_entries=4096", Act::Write(file, b"4096".to_vec())));
    }
    shell.act(acts)?;
    let names = hosts.map(|place| place.name.as_str()).chain([ROUTER]);
    shell.run_all(None, &names.map(|name| format!("ip netns add {name}")).collect::<Vec<_>>())
}

/// Adds the commands that create the link between the router and a host. With netem, the router's end gets an address
/// and a permanent neighbour, so that an experiment does not depend on address resolution.
fn lay(commands: &mut Vec<String>, wire: &Wire<'_>, link: LinkKind) {
    let Wire { interface, place, seat } = wire;
    let (host, router) = (place.address, places::gateway(place.address));
    let (host_mac, router_mac) = (places::mac_text(place.mac), places::mac_text(places::mac(router)));
    let cable_mac = match seat {
        Seat::Namespace => host_mac.clone(),
        Seat::Guest => places::mac_text(places::cable_mac(place.mac)),
    };
    commands.push(format!(
        "ip link add {interface} mtu 1500 address {router_mac} type veth peer name {HOST_INTERFACE} mtu 1500 address \
         {cable_mac} netns {}",
        place.name
    ));
    commands.extend(be_silent(interface));
    commands.push(format!("ip link set {interface} up"));
    if link == LinkKind::Netem {
        commands.push(format!("ip addr add {} dev {interface}", with_prefix(router)));
        commands.push(format!("ip neigh add {host} lladdr {host_mac} dev {interface} nud permanent"));
    }
}

fn host_commands(place: &Place) -> Vec<String> {
    be_silent(HOST_INTERFACE).into_iter().chain(inside(place)).collect()
}

/// Returns the commands that configure a host in the namespace or guest that has the interface.
pub(crate) fn inside(place: &Place) -> Vec<String> {
    let (host, router) = (place.address, places::gateway(place.address));
    let router_mac = places::mac_text(places::mac(router));
    vec![
        LOOPBACK.to_owned(),
        format!("ip link set {HOST_INTERFACE} up"),
        format!("ip addr add {} dev {HOST_INTERFACE}", with_prefix(host)),
        // `default` alone is the default route of IPv4.
        format!("ip route add {} via {router}", if host.is_ipv6() { "::/0" } else { "default" }),
        format!("ip neigh add {router} lladdr {router_mac} dev {HOST_INTERFACE} nud permanent"),
    ]
}

/// Returns an address with its prefix length. It is unique, so IPv6 skips duplicate address detection.
fn with_prefix(address: IpAddr) -> String {
    match address {
        IpAddr::V4(_) => format!("{address}/24"),
        IpAddr::V6(_) => format!("{address}/64 nodad"),
    }
}

/// Returns the commands for the end of a link that continues into a guest: a bridge to the guest's network card.
fn bridge() -> Vec<String> {
    let mut commands = vec![
        LOOPBACK.to_owned(),
        format!("ip link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"),
        format!("ip tuntap add dev {GUEST_TAP} mode tap"),
    ];
    let interfaces = [HOST_INTERFACE, GUEST_TAP, BRIDGE];
    commands.extend(interfaces.iter().filter_map(|interface| be_silent(interface)));
    commands.extend([HOST_INTERFACE, GUEST_TAP].map(|interface| format!("ip link set {interface} master {BRIDGE}")));
    commands.extend(interfaces.map(|interface| format!("ip link set {interface} up")));
    commands
}

/// Returns the command that prevents a link-local IPv6 address of an interface, for which the kernel would send packets
/// into the experiment's queues; `None` if the kernel has no IPv6. The command must run before the interface is up.
pub(crate) fn be_silent(interface: &str) -> Option<String> {
    Path::new("/proc/sys/net/ipv6").exists().then(|| format!("ip link set {interface} addrgenmode none"))
}
