//! The fields of a packet that the meter reads: its flow, its size, and its identity.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// IP protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv6 extension headers that are skipped: hop-by-hop options, routing, destination options (RFC 8200, section 4).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// TCP flags that consume a sequence number.
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;
/// Number of bytes of the transport header and payload that identify a packet.
const IDENTIFYING: usize = 64;

/// Transport protocols that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP, including QUIC.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        })
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Address and port of the receiver.
    pub to: SocketAddr,
}

impl FlowKey {
    /// Returns the key of the opposite direction.
    pub fn reversed(self) -> FlowKey {
        FlowKey { protocol: self.protocol, from: self.to, to: self.from }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParsedPacket {
    pub key: FlowKey,
    /// Length of the transport payload in bytes.
    pub payload_bytes: u64,
    /// Length of the IP packet in bytes.
    pub ip_bytes: u64,
    /// Number of packets on the wire; more than one if the kernel leaves segmentation to the interface.
    pub packets: u64,
    /// Sequence number in the TCP header; 0 for UDP.
    pub sequence: u32,
    /// Whether a TCP segment has SYN or FIN set, which consume a sequence number.
    pub is_syn_or_fin: bool,
    /// Hash that is equal at both ends of the path, and differs between most packets.
    pub identity: u64,
}

/// Parses the beginning of an IP packet. `segment_bytes` is the payload of each packet into which the interface will
/// segment it, or zero if it is one packet. Returns `None` for malformed packets, fragments and other protocols.
pub(super) fn read(ip: &[u8], segment_bytes: u64) -> Option<ParsedPacket> {
    let (head, transport) = match ip.first()? >> 4 {
        4 => version_4(ip)?,
        6 => version_6(ip)?,
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes(transport.get(at..at + 2)?.try_into().ok()?));
    let (from, to) = (SocketAddr::new(head.from, port(0)?), SocketAddr::new(head.to, port(2)?));
    let (protocol, header_bytes, checksum, flags) = match head.protocol {
        TCP => (Protocol::Tcp, u64::from(transport.get(12)? >> 4) * 4, 16, *transport.get(13)?),
        UDP => (Protocol::Udp, 8, 6, 0),
        _ => return None,
    };
    let payload_bytes = head.transport_bytes.checked_sub(header_bytes)?;
    let sequence = match protocol {
        Protocol::Tcp => u32::from_be_bytes(transport.get(4..8)?.try_into().ok()?),
        Protocol::Udp => 0,
    };
    let packets = if segment_bytes == 0 { 1 } else { payload_bytes.div_ceil(segment_bytes).max(1) };
    let identifying = &transport[..transport.len().min(IDENTIFYING).min(head.transport_bytes as usize)];
    // The transport checksum is skipped: within one machine, it is often computed on the way.
    let bytes = identifying.iter().enumerate().filter(|(at, _)| !(checksum..checksum + 2).contains(at));
    let addresses = octets(head.from).into_iter().chain(octets(head.to));
    let identifying_bytes =
        addresses.chain(head.id.to_be_bytes()).chain([head.protocol]).chain(bytes.map(|(_, byte)| *byte));
    Some(ParsedPacket {
        key: FlowKey { protocol, from, to },
        payload_bytes,
        ip_bytes: head.ip_bytes,
        packets,
        sequence,
        is_syn_or_fin: flags & (SYN | FIN) != 0,
        identity: fnv(identifying_bytes),
    })
}

struct Head {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    id: u16,
    ip_bytes: u64,
    transport_bytes: u64,
}

fn version_4(ip: &[u8]) -> Option<(Head, &[u8])> {
    let number = |at: usize| Some(u16::from_be_bytes(ip.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
    let header = usize::from(ip[0] & 0x0f) * 4;
    /// Mask of the flag "more fragments" and of the fragment offset.
    const FRAGMENT: u16 = 0x3fff;
    if number(6)? & FRAGMENT != 0 {
        return None;
    }
    let ip_bytes = u64::from(number(2)?);
    let head = Head {
        from: address(12)?.into(),
        to: address(16)?.into(),
        protocol: ip[9],
        id: number(4)?,
        ip_bytes,
        transport_bytes: ip_bytes.checked_sub(header as u64)?,
    };
    Some((head, ip.get(header..)?))
}

fn version_6(ip: &[u8]) -> Option<(Head, &[u8])> {
    const HEADER: usize = 40;
    let address = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
    let payload = usize::from(u16::from_be_bytes(ip.get(4..6)?.try_into().ok()?));
    let (mut protocol, mut at) = (*ip.get(6)?, HEADER);
    while EXTENSIONS.contains(&protocol) {
        (protocol, at) = (*ip.get(at)?, at + 8 + 8 * usize::from(*ip.get(at + 1)?));
    }
    let head = Head {
        from: address(8)?.into(),
        to: address(24)?.into(),
        protocol,
        id: 0,
        ip_bytes: (HEADER + payload) as u64,
        transport_bytes: (HEADER + payload).checked_sub(at)? as u64,
    };
    Some((head, ip.get(at..)?))
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Computes a 64-bit FNV-1a hash.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a TCP segment over IPv4.
    pub fn segment(sequence: u32, id: u16, payload: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip[2..4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip.extend([443u16.to_be_bytes(), 5000u16.to_be_bytes()].concat());
        ip.extend(sequence.to_be_bytes());
        ip.extend([0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        ip.extend(payload);
        ip
    }

    #[test]
    fn a_segment_is_matched_despite_a_different_checksum_and_ttl() {
        let mut ip = segment(7, 1, b"hello");
        let parsed = read(&ip, 0).unwrap();
        assert_eq!((parsed.payload_bytes, parsed.ip_bytes, parsed.packets, parsed.sequence), (5, 45, 1, 7));
        assert_eq!(parsed.key.from, "10.0.0.1:443".parse().unwrap());
        assert_eq!(parsed.key.reversed().from, "10.0.0.2:5000".parse().unwrap());
        // Changes the TTL, the IP checksum, the ECN bits and the TCP checksum.
        (ip[8], ip[10], ip[1], ip[37]) = (63, 9, 3, 9);
        assert_eq!(read(&ip, 0).unwrap().identity, parsed.identity);
        assert_ne!(read(&segment(7, 2, b"hello"), 0).unwrap().identity, parsed.identity, "a retransmission");
        assert_eq!(read(&segment(7, 1, &[0; 3000]), 1448).unwrap().packets, 3);
    }

    #[test]
    fn udp_over_ipv6_is_parsed_behind_an_extension_header() {
        let mut ip = vec![0x60, 0, 0, 0, 0, 8 + 12, 60, 64];
        ip.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        ip.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        ip.extend([UDP, 0, 0, 0, 0, 0, 0, 0]);
        ip.extend([0x11, 0x51, 0x13, 0x88, 0, 12, 0, 0, 1, 2, 3, 4]);
        let parsed = read(&ip, 0).unwrap();
        assert_eq!((parsed.key.protocol, parsed.payload_bytes, parsed.ip_bytes), (Protocol::Udp, 4, 60));
        assert_eq!(parsed.key.from, "[fd00::1]:4433".parse().unwrap());
    }

    #[test]
    fn fragments_other_protocols_and_short_packets_are_ignored() {
        let mut fragment = segment(7, 1, b"hello");
        fragment[7] = 1;
        assert_eq!(read(&fragment, 0), None);
        let mut icmp = segment(7, 1, b"hello");
        icmp[9] = 1;
        assert_eq!(read(&icmp, 0), None);
        for length in 0..40 {
            assert_eq!(
                read(&segment(7, 1, b"")[..length], 0).map(|parsed| parsed.payload_bytes),
                None.or(match length {
                    34.. => Some(0),
                    _ => None,
                })
            );
        }
    }
}
