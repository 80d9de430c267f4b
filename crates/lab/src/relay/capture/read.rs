//! Reads a capture that [`super::Recorder`] wrote, on a machine of the same byte order.

use super::pcapng::{BYTE_ORDER, COMMENT, END_OF_OPTIONS, ENHANCED_PACKET, INTERFACE, INTERFACE_NAME, SECTION_HEADER};
use super::{Captured, FATES};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use thalweg_units::{Bytes, Time};

/// Maximum accepted length of a block after its type and first length, in bytes.
const MAX_BLOCK_BYTES: usize = 1 << 12;

/// Passes the packets of a capture to `take`, in the order of the file.
///
/// # Errors
/// If the file cannot be read, or is malformed.
pub fn read(path: &Path, take: &mut dyn FnMut(Captured)) -> io::Result<()> {
    read_from(BufReader::with_capacity(1 << 20, File::open(path)?), take)
}

/// Like [`read`], from any reader.
pub(crate) fn read_from(mut file: impl Read, take: &mut dyn FnMut(Captured)) -> io::Result<()> {
    let mut interfaces = Vec::new();
    let mut block = Vec::new();
    let mut is_first = true;
    while let Some(kind) = next_block(&mut file, &mut block)? {
        if is_first && (kind != SECTION_HEADER || number(&block, 0) != Some(BYTE_ORDER)) {
            return Err(damaged("it does not start with a section in this machine's byte order"));
        }
        is_first = false;
        match kind {
            INTERFACE => {
                interfaces.push(interface(&block).ok_or_else(|| damaged("an interface was not written by thalweg"))?);
            }
            ENHANCED_PACKET => {
                take(packet(&block, &interfaces).ok_or_else(|| damaged("a packet was not written by thalweg"))?);
            }
            _ => {}
        }
    }
    if is_first { Err(damaged("it is empty")) } else { Ok(()) }
}

/// Reads a block's body; returns its type, or `None` at the end of the file.
fn next_block(file: &mut impl Read, body: &mut Vec<u8>) -> io::Result<Option<u32>> {
    let mut head = [0; 8];
    match file.read(&mut head[..1])? {
        0 => return Ok(None),
        _ => file.read_exact(&mut head[1..])?,
    }
    let [kind, total] = [number(&head, 0), number(&head, 4)].map(|field| field.expect("it is there"));
    let len = (total as usize).checked_sub(8).filter(|len| (4..=MAX_BLOCK_BYTES).contains(len));
    body.resize(len.ok_or_else(|| damaged("a block has an impossible length"))?, 0);
    file.read_exact(body)?;
    if number(body, body.len() - 4) != Some(total) {
        return Err(damaged("the two lengths of a block differ"));
    }
    body.truncate(body.len() - 4);
    Ok(Some(kind))
}

/// Returns the direction and outcome of the packets of an interface.
fn interface(body: &[u8]) -> Option<(bool, &'static str)> {
    let (way, fate) = option(body.get(8..)?, INTERFACE_NAME)?.split_once(' ')?;
    let is_forward = match way {
        "forward" => true,
        "reverse" => false,
        _ => return None,
    };
    FATES.iter().find(|name| **name == fate).map(|fate| (is_forward, *fate))
}

fn packet(body: &[u8], interfaces: &[(bool, &'static str)]) -> Option<Captured> {
    let field = |index: usize| number(body, 4 * index);
    let &(is_forward, fate) = interfaces.get(field(0)? as usize)?;
    let t = Time(u64::from(field(1)?) << 32 | u64::from(field(2)?));
    let options = 20 + (field(3)? as usize).next_multiple_of(4);
    let comment = option(body.get(options..)?, COMMENT)?;
    let (number, backlog) = comment.strip_prefix("number ")?.split_once(", backlog ")?;
    Some(Captured {
        is_forward,
        t,
        number: number.parse().ok()?,
        fate,
        size_bytes: Bytes(field(4)?.into()),
        backlog_bytes: Bytes(backlog.parse().ok()?),
    })
}

/// Returns the text of an option; `None` if it is missing or malformed.
fn option(mut options: &[u8], wanted: u16) -> Option<&str> {
    loop {
        let [code, len] = [0, 2].map(|at| Some(u16::from_ne_bytes(options.get(at..at + 2)?.try_into().ok()?)));
        let (code, len) = (code?, usize::from(len?));
        if code == wanted {
            return std::str::from_utf8(options.get(4..4 + len)?).ok();
        }
        if code == END_OF_OPTIONS {
            return None;
        }
        options = options.get(4 + len.next_multiple_of(4)..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("incomplete capture: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::capture::pcapng::{write_head, write_packet};

    fn a_capture() -> Vec<u8> {
        let packet = Captured {
            is_forward: false,
            t: Time(7),
            number: 0,
            fate: FATES[1],
            size_bytes: Bytes(60),
            backlog_bytes: Bytes(3000),
        };
        let mut bytes = Vec::new();
        write_head(&mut bytes, false).expect("memory takes all");
        write_packet(&mut bytes, &packet, &[0x45; 60], &mut Vec::new()).expect("memory takes all");
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> io::Result<usize> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("packets.pcapng");
        std::fs::write(&path, bytes)?;
        let mut count = 0;
        read(&path, &mut |_| count += 1).map(|()| count)
    }

    #[test]
    fn a_capture_truncated_within_a_block_is_rejected() {
        let capture = a_capture();
        assert_eq!(read_bytes(&capture).expect("it is whole"), 1);
        for cut in [1, 5, 40] {
            read_bytes(&capture[..capture.len() - cut]).expect_err("it is cut short");
        }
    }

    #[test]
    fn a_file_that_is_not_a_capture_is_rejected() {
        for bytes in [&b""[..], b"{\"format\": 1}\n", &[0; 4096]] {
            read_bytes(bytes).expect_err("it is not a capture");
        }
    }
}
