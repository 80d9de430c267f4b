//! The fields of an IP packet that queue disciplines read and write.

use thalweg_units::Ecn;

/// Length of an IPv4 header without options, in bytes.
const IPV4_HEADER: usize = 20;
/// Length of an IPv6 header in bytes; extension headers are not parsed.
const IPV6_HEADER: usize = 40;

/// Protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// TCP flags (RFC 9293, section 3.1; RFC 3168, section 6.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
/// Kinds of TCP options (RFC 9293, section 3.2; RFC 2018, section 3).
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;

/// Returns a hash of the addresses, the protocol and, for TCP and UDP, the ports. 0 if the packet is neither IPv4
/// nor IPv6, or shorter than an IP header without options.
pub(super) fn flow(ip: &[u8]) -> u64 {
    let (addresses, protocol, transport) = match version(ip) {
        Some(4) => (&ip[12..20], ip[9], ip.get(usize::from(ip[0] & 0x0f) * 4..)),
        Some(6) => (&ip[8..40], ip[6], ip.get(IPV6_HEADER..)),
        _ => return 0,
    };
    let ports =
        transport.and_then(|transport| transport.get(..4)).filter(|_| matches!(protocol, TCP | UDP)).unwrap_or(&[]);
    // FNV-1a.
    let bytes = addresses.iter().chain(std::iter::once(&protocol)).chain(ports);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the kind of an acknowledgement without data; `None` for any other packet.
pub(super) fn acknowledgement(ip: &[u8]) -> Option<Acknowledgement> {
    let (header, end) = match version(ip) {
        Some(4) if ip[9] == TCP => (usize::from(ip[0] & 0x0f) * 4, usize::from(u16::from_be_bytes([ip[2], ip[3]]))),
        Some(6) if ip[6] == TCP => (IPV6_HEADER, IPV6_HEADER + usize::from(u16::from_be_bytes([ip[4], ip[5]]))),
        _ => return None,
    };
    let segment = ip.get(header..end)?;
    let options_end = usize::from(segment.get(12)? >> 4) * 4;
    if segment.len() != options_end || segment[13] & (FIN | SYN | RST | ACK) != ACK {
        return None;
    }
    let reports_more = segment[13] & ECE != 0 || has_sack(segment.get(20..options_end)?);
    Some(if reports_more { Acknowledgement::WithReports } else { Acknowledgement::Plain })
}

/// Kind of an acknowledgement without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acknowledgement {
    /// It carries neither SACK blocks nor an ECN echo, so a later one can replace it.
    Plain,
    /// It carries SACK blocks or an ECN echo.
    WithReports,
}

/// Returns whether TCP options contain SACK blocks; malformed options end the search.
fn has_sack(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        match (kind, rest) {
            (&OPTION_SACK, _) => return true,
            (&OPTION_END, _) => return false,
            (&OPTION_NOP, _) => options = rest,
            (_, [length, ..]) if *length >= 2 => options = options.get(usize::from(*length)..).unwrap_or(&[]),
            _ => return false,
        }
    }
    false
}

pub(super) fn ecn(ip: &[u8]) -> Ecn {
    match version(ip) {
        Some(4) => Ecn::from_bits(ip[1]),
        Some(6) => Ecn::from_bits(ip[1] >> 4),
        _ => Ecn::NotEct,
    }
}

/// Sets the ECN field to CE, and corrects the checksum of an IPv4 header (RFC 1624).
pub(super) fn mark_ce(ip: &mut [u8]) {
    match version(ip) {
        Some(4) => {
            let before = u16::from_be_bytes([ip[0], ip[1]]);
            ip[1] |= 0b11;
            let after = u16::from_be_bytes([ip[0], ip[1]]);
            let checksum = u16::from_be_bytes([ip[10], ip[11]]);
            let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) => ip[1] |= 0b0011_0000,
        _ => {}
    }
}

/// Returns the version field of a packet; `None` if the packet is shorter than a header without options.
fn version(ip: &[u8]) -> Option<u8> {
    let version = ip.first()? >> 4;
    let header = if version == 4 { IPV4_HEADER } else { IPV6_HEADER };
    (ip.len() >= header).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the IP header, with a valid checksum, and the ports of a segment with this ECN field.
    fn segment(ecn: u8) -> Vec<u8> {
        let mut ip =
            vec![0x45, ecn, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x12, 0x34, 1, 0xbb];
        let sum = checksum(&ip[..20]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip
    }

    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn marking_keeps_the_header_checksum_valid() {
        for codepoint in [0b01, 0b10] {
            let mut ip = segment(codepoint);
            mark_ce(&mut ip);
            assert_eq!(ecn(&ip), Ecn::Ce);
            assert_eq!(checksum(&ip[..20]), 0, "the sum over a whole header is zero");
        }
        assert_eq!(ecn(&segment(0b10)), Ecn::Ect0);
        assert_eq!(ecn(&segment(0b01)), Ecn::Ect1);
    }

    #[test]
    fn ipv6_has_its_ecn_field_in_the_second_byte() {
        let mut ip = vec![0; 44];
        ip[0] = 0x60;
        ip[1] = 0b0010_0000;
        assert_eq!(ecn(&ip), Ecn::Ect0);
        mark_ce(&mut ip);
        assert_eq!((ecn(&ip), ip[0]), (Ecn::Ce, 0x60));
    }

    fn ack(flags: u8, options: &[u8]) -> Vec<u8> {
        let mut ip = segment(0);
        ip.resize(20, 0);
        ip.extend([
            0x12,
            0x34,
            1,
            0xbb,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            (5 + options.len() as u8 / 4) << 4,
            flags,
            1,
            0,
            0,
            0,
            0,
            0,
        ]);
        ip.extend(options);
        let length = (ip.len() as u16).to_be_bytes();
        ip[2..4].copy_from_slice(&length);
        ip
    }

    #[test]
    fn a_pure_ack_has_no_sack_no_ecn_echo_and_no_data() {
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 12];
        assert_eq!(acknowledgement(&ack(ACK, &timestamps)), Some(Acknowledgement::Plain));
        assert_eq!(acknowledgement(&ack(ACK, &sack)), Some(Acknowledgement::WithReports));
        assert_eq!(acknowledgement(&ack(ACK | ECE, &timestamps)), Some(Acknowledgement::WithReports));
        for flags in [SYN | ACK, FIN | ACK, RST, 0] {
            assert_eq!(acknowledgement(&ack(flags, &timestamps)), None);
        }
        let mut data = ack(ACK, &timestamps);
        data.push(7);
        let length = (data.len() as u16).to_be_bytes();
        data[2..4].copy_from_slice(&length);
        assert_eq!(acknowledgement(&data), None);
        for length in 0..52 {
            acknowledgement(&ack(ACK, &timestamps)[..length]);
        }
    }

    #[test]
    fn the_flow_key_depends_on_ports_and_not_on_the_ecn_mark() {
        let (first, mut other, mut marked) = (segment(0b10), segment(0b10), segment(0b10));
        other[21] ^= 1;
        mark_ce(&mut marked);
        assert_ne!(flow(&first), flow(&other));
        assert_eq!(flow(&first), flow(&marked));
        assert_eq!(flow(&[]), 0);
    }
}
