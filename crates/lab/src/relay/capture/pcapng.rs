//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3), in the byte order of the machine.

use super::{Captured, FATES};
use std::io::{self, Write};
use std::sync::LazyLock;

pub(super) const SECTION_HEADER: u32 = 0x0A0D_0D0A;
pub(super) const BYTE_ORDER: u32 = 0x1A2B_3C4D;
pub(super) const INTERFACE: u32 = 1;
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Link types of packets that begin with an IP header (LINKTYPE_IPV4 and LINKTYPE_IPV6 of the tcpdump group's list).
/// LINKTYPE_RAW covers both, but libpcap 1.10 refuses a file with two interfaces of that type.
const IPV4: u16 = 228;
const IPV6: u16 = 229;
/// Maximum number of stored bytes per packet, enough for IP and TCP headers with options.
pub(super) const SNAP_LEN: usize = 128;

pub(super) const END_OF_OPTIONS: u16 = 0;
pub(super) const COMMENT: u16 = 1;
pub(super) const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
/// Time resolution: 10^-9 seconds.
const NANOSECONDS: u8 = 9;

pub(super) static INTERFACES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = ["forward", "reverse"].iter().flat_map(|way| FATES.iter().map(move |fate| format!("{way} {fate}")));
    names.collect()
});

/// Writes the blocks that precede the packets.
pub(super) fn write_head(out: &mut impl Write, is_ipv6: bool) -> io::Result<()> {
    let mut body = Vec::new();
    body.extend(BYTE_ORDER.to_ne_bytes());
    body.extend(1u16.to_ne_bytes());
    body.extend(0u16.to_ne_bytes());
    // The length of the section is unspecified.
    body.extend(u64::MAX.to_ne_bytes());
    write_block(out, SECTION_HEADER, &body)?;
    for name in INTERFACES.iter() {
        body.clear();
        body.extend(if is_ipv6 { IPV6 } else { IPV4 }.to_ne_bytes());
        body.extend(0u16.to_ne_bytes());
        body.extend((SNAP_LEN as u32).to_ne_bytes());
        option(&mut body, INTERFACE_NAME, name.as_bytes());
        option(&mut body, TIME_RESOLUTION, &[NANOSECONDS]);
        option(&mut body, END_OF_OPTIONS, &[]);
        write_block(out, INTERFACE, &body)?;
    }
    Ok(())
}

/// Writes a packet; `head` is its first bytes, and `body` is a scratch buffer.
pub(super) fn write_packet(out: &mut impl Write, packet: &Captured, head: &[u8], body: &mut Vec<u8>) -> io::Result<()> {
    let fate = FATES.iter().position(|fate| *fate == packet.fate).expect("the fates are those of `fate`");
    let interface = if packet.is_forward { fate } else { FATES.len() + fate };
    body.clear();
    body.extend((interface as u32).to_ne_bytes());
    body.extend(((packet.t.0 >> 32) as u32).to_ne_bytes());
    body.extend((packet.t.0 as u32).to_ne_bytes());
    body.extend((head.len() as u32).to_ne_bytes());
    body.extend((packet.size_bytes.0 as u32).to_ne_bytes());
    body.extend(head);
    pad(body);
    let mut comment = [0; 64];
    let mut unwritten = &mut comment[..];
    write!(unwritten, "number {}, backlog {}", packet.number, packet.backlog_bytes.0)?;
    let len = 64 - unwritten.len();
    option(body, COMMENT, &comment[..len]);
    option(body, END_OF_OPTIONS, &[]);
    write_block(out, ENHANCED_PACKET, body)
}

fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let total = (body.len() as u32 + 12).to_ne_bytes();
    out.write_all(&kind.to_ne_bytes())?;
    out.write_all(&total)?;
    out.write_all(body)?;
    out.write_all(&total)
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_ne_bytes());
    body.extend((value.len() as u16).to_ne_bytes());
    body.extend(value);
    pad(body);
}

/// Pads to 32 bits.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
