//! A socket that receives the packets that one interface sends and receives.

use crate::error::Error;
use crate::packet_socket::{self, OFFLOAD_HEADER, Ring, RingSize};
use rustix::net::netdevice::name_to_index;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;

/// Size of a ring's frame in bytes: space for the kernel's headers, and those of Ethernet, IP and TCP.
const FRAME: usize = 256;
const BLOCK: usize = 1 << 18;
const BLOCKS: usize = 32;
const ETHERNET_HEADER: usize = 14;

/// An interface whose packets are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapPoint {
    /// File of the interface's network namespace, such as `/run/netns/receiver`; `None` for that of the calling thread.
    pub namespace: Option<PathBuf>,
    /// Name of the interface.
    pub interface: String,
}

pub(super) struct TapFrame<'a> {
    /// Timestamp from CLOCK_REALTIME.
    pub realtime_ns: u64,
    /// Whether the host sends the packet, rather than receives it.
    pub is_outgoing: bool,
    /// Payload of each packet into which the interface will segment this one; zero if it is one packet.
    pub segment_bytes: u64,
    /// The first bytes of the IP packet.
    pub ip: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Tap {
    socket: OwnedFd,
    ring: Ring,
}

impl Tap {
    /// Opens a tap in the namespace of its interface.
    ///
    /// # Errors
    /// `no-packet-socket`: the interface cannot be tapped.
    pub fn open(point: &TapPoint) -> Result<Tap, Error> {
        let opened = match &point.namespace {
            None => open(&point.interface),
            // A separate thread enters the namespace, so that the calling thread stays in its own.
            Some(namespace) => thread::scope(|scope| {
                let worker = thread::Builder::new().name("tap".to_owned()).spawn_scoped(scope, || {
                    enter(namespace)?;
                    open(&point.interface)
                })?;
                worker.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
            }),
        };
        opened.map_err(|error| {
            let place = point.namespace.as_ref().map_or(String::new(), |file| format!(" in {}", file.display()));
            Error::new(
                "no-packet-socket",
                format!("packets of {}{place} cannot be metered: {error}", point.interface),
                "packet sockets need CAP_NET_RAW in the namespace: test with `unshare -Urn tcpdump -D`, or run as root",
            )
        })
    }

    /// Returns the oldest packet in the ring.
    pub fn front(&self) -> Option<TapFrame<'_>> {
        let frame = self.ring.front()?;
        // The offload header contains the kind of segmentation and the segment size.
        let segment_bytes = match frame.bytes.get(1..6) {
            Some(&[kind, _, _, low, high]) if kind != 0 => u64::from(u16::from_ne_bytes([low, high])),
            _ => 0,
        };
        Some(TapFrame {
            realtime_ns: frame.realtime_ns,
            is_outgoing: frame.to == libc::PACKET_OUTGOING,
            segment_bytes,
            ip: frame.bytes.get(OFFLOAD_HEADER + ETHERNET_HEADER..).unwrap_or(&[]),
        })
    }

    /// Removes the oldest packet from the ring.
    pub fn pop(&mut self) {
        self.ring.pop();
    }

    /// Returns the number of packets that were dropped because the ring was full, since the last call.
    pub fn dropped(&self) -> u64 {
        packet_socket::dropped(self.socket.as_fd()).unwrap_or(0)
    }
}

fn enter(namespace: &Path) -> io::Result<()> {
    let file = File::open(namespace)?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

fn open(interface: &str) -> io::Result<Tap> {
    let socket = packet_socket::socket()?;
    let index = name_to_index(&socket, interface)?;
    packet_socket::set_packet(socket.as_fd(), libc::PACKET_VNET_HDR, &1)?;
    let ring = Ring::of(socket.as_fd(), RingSize { frame: FRAME, block: BLOCK, blocks: BLOCKS })?;
    packet_socket::bind(socket.as_fd(), index, libc::ETH_P_ALL)?;
    Ok(Tap { socket, ring })
}
