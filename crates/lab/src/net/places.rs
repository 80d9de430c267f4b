//! The hosts: namespaces, their addresses, and the flows that each sends and receives.
//!
//! ```text
//!  sender    10.77.1.2 eth0 ──── s1 10.77.1.1 ┐
//!  sender-2  10.77.2.2 eth0 ──── s2 10.77.2.1 ┤ router ┤ r0 10.77.0.1 ──── eth0 10.77.0.2 receiver
//!  ...                                        ┘
//! ```
//!
//! Flows of one scenario host with different extra RTTs need different paths, so they get separate namespaces.
//! The router has addresses only with queue disciplines.
//!
//! With IPv6, the addresses are `fd77:0:0:i::h`: fd77:0:0:1::2 instead of 10.77.1.2.
//!
//! Ethernet addresses are derived from the IP addresses, so that no address resolution is needed: `02:00:00:00:i:h` is
//! the address of 10.77.i.h, where 02 marks it as locally administered.

use crate::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_plan::plan::Experiment;
use thalweg_units::Span;

/// Namespace of the router.
pub(crate) const ROUTER: &str = "router";
/// Namespace of the receiving host.
pub(crate) const RECEIVER: &str = "receiver";
/// Name of the interface of a host.
pub(crate) const HOST_INTERFACE: &str = "eth0";
/// The router's interface towards the receiver.
pub(crate) const RECEIVER_INTERFACE: &str = "r0";

/// Maximum number of senders: the number is a byte of the addresses. 0 is the receiver's network, and the Ethernet
/// addresses of ifb devices contain 255.
const MAX_SENDERS: usize = 254;

/// Last byte of the addresses of hosts, and of the router's interface towards each host.
const HOST: u8 = 2;
const GATEWAY: u8 = 1;

/// A host of the network: a separate namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the namespace.
    pub name: String,
    /// Name of the host in the scenario.
    pub host: String,
    /// RTT of the host's flows beyond that of the path.
    pub extra_rtt: Span,
    /// IP address.
    pub address: IpAddr,
    /// Ethernet address of the host's interface.
    pub mac: [u8; 6],
    /// Indices in the plan of the flows whose data the host sends.
    pub flows: Vec<usize>,
    /// Indices in the plan of the flows whose data the host receives.
    pub receives: Vec<usize>,
    /// Whether the host sends or receives background traffic.
    pub background: bool,
    /// Queue discipline of the interface; `None` for the kernel's default.
    pub qdisc: Option<String>,
}

impl Place {
    /// Returns whether this is the host at the far end of the path.
    pub fn is_receiver(&self) -> bool {
        self.name == RECEIVER
    }

    /// Returns the Ethernet address in text form.
    pub fn mac_text(&self) -> String {
        mac_text(self.mac)
    }
}

/// Where the sending hosts run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// Directly in the namespaces.
    Namespace,
    /// In guests, each connected to the device [`GUEST_TAP`] of a namespace.
    Guest,
}

/// Name of the tap device to which the network interface of a guest is connected.
pub const GUEST_TAP: &str = "tap";

/// Returns the name of the router's interface towards sender number `i`, from 1.
pub(crate) fn sender_interface(i: usize) -> String {
    format!("s{i}")
}

/// Returns the address of the router's interface towards the host at this address.
pub(crate) fn gateway(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [_, _, network, _] = address.octets();
            address_of(false, network, GATEWAY)
        }
        IpAddr::V6(address) => {
            let [_, _, _, network, ..] = address.segments();
            address_of(true, network as u8, GATEWAY)
        }
    }
}

/// Returns the address of a host, or of the router, in network number `network`.
fn address_of(is_ipv6: bool, network: u8, host: u8) -> IpAddr {
    if is_ipv6 {
        Ipv6Addr::new(0xfd77, 0, 0, network.into(), 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, 77, network, host).into()
    }
}

/// Returns the Ethernet address that is derived from an IP address.
pub(crate) fn mac(address: IpAddr) -> [u8; 6] {
    let (network, host) = match address {
        IpAddr::V4(address) => (address.octets()[2], address.octets()[3]),
        IpAddr::V6(address) => (address.segments()[3] as u8, address.segments()[7] as u8),
    };
    [0x02, 0, 0, 0, network, host]
}

/// Returns the Ethernet address of the interface that leads to a guest; the guest itself uses `mac`.
pub(crate) fn cable_mac(mac: [u8; 6]) -> [u8; 6] {
    let [first, _, rest @ ..] = mac;
    let mut cable = [first, 1, 0, 0, 0, 0];
    cable[2..].copy_from_slice(&rest);
    cable
}

/// Formats an Ethernet address.
pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns the senders in the order of their numbers, and the receiver.
///
/// # Errors
/// If there are more senders than addresses.
pub(crate) fn places(experiment: &Experiment) -> Result<(Vec<Place>, Place), Error> {
    let mut senders: Vec<Place> = Vec::new();
    let mut place_of = |host: &str, extra_rtt: Span| -> Result<usize, Error> {
        if let Some(index) = senders.iter().position(|place| place.host == host && place.extra_rtt == extra_rtt) {
            return Ok(index);
        }
        if senders.len() == MAX_SENDERS {
            return Err(Error::new(
                "too-many-senders",
                format!("the flows have more than {MAX_SENDERS} different combinations of host and extra_rtt"),
                "let flows share hosts and values of `extra_rtt`, or use the simulator: thalweg run FILE --engine sim",
            ));
        }
        let address = address_of(experiment.ipv6, senders.len() as u8 + 1, HOST);
        senders.push(Place {
            name: unused_name(host, &senders, experiment),
            host: host.to_owned(),
            extra_rtt,
            address,
            mac: mac(address),
            flows: Vec::new(),
            receives: Vec::new(),
            background: false,
            qdisc: experiment.hosts.get(host).and_then(|host| host.qdisc.clone()),
        });
        Ok(senders.len() - 1)
    };
    if experiment.flows.is_empty() {
        place_of("sender", Span::ZERO)?;
    }
    let mut place_of_flow = Vec::new();
    for flow in &experiment.flows {
        place_of_flow.push(place_of(&flow.host, flow.extra_rtt_ns)?);
    }
    // Background traffic has no host in a scenario, so it belongs to the host `sender` without extra RTT.
    let background = if experiment.background.is_empty() { None } else { Some(place_of("sender", Span::ZERO)?) };

    for (number, (flow, place)) in experiment.flows.iter().zip(place_of_flow).enumerate() {
        let place = &mut senders[place];
        if flow.up { place.receives.push(number) } else { place.flows.push(number) }
    }
    if let Some(place) = background {
        senders[place].background = true;
    }
    let address = address_of(experiment.ipv6, 0, HOST);
    let (flows, receives) = (0..experiment.flows.len()).partition(|flow| experiment.flows[*flow].up);
    let receiver = Place {
        name: RECEIVER.to_owned(),
        host: RECEIVER.to_owned(),
        extra_rtt: Span::ZERO,
        address,
        mac: mac(address),
        flows,
        receives,
        background: !experiment.background.is_empty(),
        qdisc: experiment.hosts.get(RECEIVER).and_then(|host| host.qdisc.clone()),
    };
    Ok((senders, receiver))
}

/// Returns an unused name for a namespace: the host's name with `-` for special characters, and a number if necessary.
fn unused_name(host: &str, senders: &[Place], experiment: &Experiment) -> String {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain: String = host.chars().map(|c| if is_fine(c) { c } else { '-' }).collect();
    let is_free = |name: &str| {
        let is_other_host = name != host && experiment.hosts.contains_key(name);
        name != ROUTER && name != RECEIVER && !is_other_host && senders.iter().all(|place| place.name != name)
    };
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    std::iter::once(plain.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or_default()
}
