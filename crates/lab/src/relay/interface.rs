//! An interface of the router.
//!
//! An interface has two AF_PACKET sockets (packet(7)). One receives IP packets into a ring of TPACKET_V2 frames,
//! which needs no system call per packet and, unlike a socket buffer, no privilege to be large. The other one sends,
//! bypassing the queue discipline. Both have PACKET_VNET_HDR, so that packets with missing checksums and unsegmented
//! packets pass. TPACKET_V3 is not used, because it holds packets back until a block is full or a timeout has passed.

use super::packet::{ETHERNET_HEADER, IP, Packet, Pool};
use crate::error::Error;
use crate::packet_socket::{self as sys, Frame, OFFLOAD_HEADER, Ring, RingSize};
use rustix::net::netdevice::name_to_index;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// Memory that the interfaces share for their rings, in bytes.
const RINGS_BYTES: usize = 64 << 20;
/// Minimum size of a ring, and size of a block without offloads, in bytes.
const RING_LEAST_BYTES: usize = 1 << 20;
const RING_MOST_BYTES: usize = 32 << 20;
/// Size of a frame in bytes, enough for the kernel's headers and an Ethernet frame of 1514 bytes.
const FRAME: usize = 2048;
/// Size of a frame in bytes if packets may arrive unsegmented, with up to 64 KiB.
const OFFLOAD_FRAME: usize = 66 << 10;
/// Requested size of the send buffer in bytes.
const SEND_BUFFER: libc::c_int = 8 << 20;

/// Time of receipt and destination of the oldest frame, which stays in the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// CLOCK_REALTIME at the time of receipt.
    pub realtime_ns: u64,
    /// Destination address of the IP packet.
    pub to: IpAddr,
}

#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    receiver: OwnedFd,
    sender: OwnedFd,
    ring: Ring,
    mac: [u8; 6],
    /// Number of frames that were truncated because they were larger than the ring's frames.
    cut: u64,
    /// Number of packets that could not be sent.
    refused: u64,
}

impl Interface {
    /// Opens an interface; `interfaces` is the number of those that share [`RINGS_BYTES`].
    ///
    /// # Errors
    /// If the interface does not exist, or the kernel refuses packet sockets or their memory.
    pub fn open(name: &str, interfaces: usize, has_offloads: bool, is_ipv6: bool) -> Result<Interface, Error> {
        let refused = |error: &io::Error| {
            Error::new(
                "no-packet-socket",
                format!("cannot open a packet socket on {name}: {error}"),
                "packet sockets need CAP_NET_RAW in the user namespace of the network namespace: test with `unshare \
                 -Urn tcpdump -D`; if that fails too, run as root",
            )
        };
        let receiver = sys::socket().map_err(|error| refused(&error))?;
        let sender = sys::socket().map_err(|error| refused(&error))?;
        let index = name_to_index(&receiver, name).map_err(|error| {
            Error::new(
                "no-interface",
                format!("there is no interface {name}: {error}"),
                "list the interfaces in the router's namespace: ip link",
            )
        })?;
        let frame = if has_offloads { OFFLOAD_FRAME } else { FRAME };
        let bytes = (RINGS_BYTES / interfaces).clamp(RING_LEAST_BYTES, RING_MOST_BYTES);
        let prepare = || -> io::Result<Ring> {
            for socket in [&receiver, &sender] {
                sys::set_packet(socket.as_fd(), libc::PACKET_VNET_HDR, &1)?;
            }
            // A block must consist of whole pages, and is a multiple of the frame size here.
            let block = if has_offloads { 4 * frame } else { RING_LEAST_BYTES };
            let ring = Ring::of(receiver.as_fd(), RingSize { frame, block, blocks: bytes.div_ceil(block) })?;
            sys::set_packet(receiver.as_fd(), libc::PACKET_ADD_MEMBERSHIP, &promiscuous(index))?;
            sys::bind(receiver.as_fd(), index, if is_ipv6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP })?;
            sys::set_packet(sender.as_fd(), libc::PACKET_QDISC_BYPASS, &1)?;
            // Exceeds the system's limit (`net.core.wmem_max`) if permitted; otherwise, the limit applies.
            sys::set_socket(sender.as_fd(), libc::SO_SNDBUFFORCE, &SEND_BUFFER)
                .or_else(|_| sys::set_socket(sender.as_fd(), libc::SO_SNDBUF, &SEND_BUFFER))?;
            sys::bind(sender.as_fd(), index, 0)?;
            Ok(ring)
        };
        let ring = prepare().map_err(|error| refused(&error))?;
        let mac = sys::mac(receiver.as_fd()).map_err(|error| refused(&error))?;
        Ok(Interface { name: name.to_owned(), receiver, sender, ring, mac, cut: 0, refused: 0 })
    }

    /// Returns the name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the Ethernet address of the interface.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns a descriptor that becomes readable when a frame has arrived.
    pub fn readable_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Returns the time of receipt and the destination of the oldest received unicast IP packet. Discards the frames
    /// before it, and counts truncated ones as dropped.
    #[inline]
    pub fn head(&mut self) -> Option<Head> {
        loop {
            let frame = self.ring.front()?;
            if frame.is_cut {
                self.cut += 1;
            } else if let Some(head) = head(&frame) {
                return Some(head);
            }
            self.ring.pop();
        }
    }

    /// Discards the frame that [`Interface::head`] returned.
    pub fn skip(&mut self) {
        self.ring.pop();
    }

    /// Takes the frame that [`Interface::head`] returned, and replaces its Ethernet header.
    #[inline]
    pub fn take(&mut self, addresses: &Addresses, port: usize, pool: &Rc<Pool>) -> Packet {
        let frame = self.ring.front().expect("`head` showed a frame");
        let len = IP + ip_len(&frame.bytes[IP..]);
        let mut packet = pool.packet(len, port);
        let bytes = packet.bytes_mut();
        bytes[..OFFLOAD_HEADER].copy_from_slice(&frame.bytes[..OFFLOAD_HEADER]);
        // Clears the flags except the request to compute the checksum.
        bytes[0] &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
        bytes[OFFLOAD_HEADER..IP].copy_from_slice(&addresses.header);
        bytes[IP..].copy_from_slice(&frame.bytes[IP..len]);
        self.ring.pop();
        packet
    }

    /// Sends packets; counts those that cannot be sent.
    pub fn send(&mut self, packets: &[Packet]) {
        let mut unsent = packets;
        while !unsent.is_empty() {
            match sys::send(self.sender.as_fd(), unsent.iter().map(Packet::bytes)) {
                Ok(sent) => unsent = &unsent[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.refused += 1;
                    unsent = &unsent[1..];
                }
            }
        }
    }

    /// Resets the counters.
    pub fn reset(&mut self) {
        let _ = sys::dropped(self.receiver.as_fd());
        (self.cut, self.refused) = (0, 0);
    }

    /// Returns the number of packets that were lost in both directions since [`Interface::reset`].
    pub fn dropped(&self) -> u64 {
        sys::dropped(self.receiver.as_fd()).unwrap_or(0) + self.cut + self.refused
    }
}

/// Ethernet header of packets to a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    header: [u8; ETHERNET_HEADER],
}

impl Addresses {
    /// Returns the header of packets from this interface to a host, for one IP version.
    pub fn new(from: [u8; 6], to: [u8; 6], is_ipv6: bool) -> Addresses {
        let mut header = [0; ETHERNET_HEADER];
        header[..6].copy_from_slice(&to);
        header[6..12].copy_from_slice(&from);
        let kind = if is_ipv6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
        header[12..].copy_from_slice(&(kind as u16).to_be_bytes());
        Addresses { header }
    }
}

/// Flag of linux/virtio_net.h.
const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;

/// Length of an IPv4 header without options, in bytes.
const IP_HEADER: usize = 20;
/// Length of an IPv6 header in bytes.
const IPV6_HEADER: usize = 40;

fn head(frame: &Frame<'_>) -> Option<Head> {
    let is_for_one = frame.to == libc::PACKET_HOST || frame.to == libc::PACKET_OTHERHOST;
    let ip = frame.bytes.get(IP..)?;
    let to: IpAddr = match ip.first()? >> 4 {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(ip.get(16..IP_HEADER)?).ok()?).into(),
        6 => Ipv6Addr::from(<[u8; 16]>::try_from(ip.get(24..IPV6_HEADER)?).ok()?).into(),
        _ => return None,
    };
    is_for_one.then_some(Head { realtime_ns: frame.realtime_ns, to })
}

/// Returns the length of an IP packet from its header, because a short Ethernet frame has padding; that of `ip` if the
/// header's value is invalid.
fn ip_len(ip: &[u8]) -> usize {
    let header_len = if ip[0] >> 4 == 6 {
        IPV6_HEADER + usize::from(u16::from_be_bytes([ip[4], ip[5]]))
    } else {
        usize::from(u16::from_be_bytes([ip[2], ip[3]]))
    };
    if (IP_HEADER..=ip.len()).contains(&header_len) { header_len } else { ip.len() }
}

/// Returns the request to receive frames for other Ethernet addresses too.
fn promiscuous(interface: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &[u8], to: u8) -> Frame<'_> {
        Frame { realtime_ns: 1, to, is_cut: false, bytes }
    }

    fn packet() -> Vec<u8> {
        let mut bytes = vec![0; IP + 46];
        bytes[IP] = 0x45;
        bytes[IP + 3] = 30;
        bytes[IP + 16..IP + 20].copy_from_slice(&[10, 77, 0, 2]);
        bytes
    }

    #[test]
    fn a_unicast_packet_is_returned_with_its_destination() {
        for to in [libc::PACKET_HOST, libc::PACKET_OTHERHOST] {
            let head = head(&frame(&packet(), to)).expect("it is for one host");
            assert_eq!(head.to, IpAddr::from([10, 77, 0, 2]));
        }
    }

    #[test]
    fn multicast_outgoing_and_truncated_frames_are_ignored() {
        for to in [libc::PACKET_BROADCAST, libc::PACKET_MULTICAST, libc::PACKET_OUTGOING] {
            assert!(head(&frame(&packet(), to)).is_none());
        }
        assert!(head(&frame(&packet()[..IP + 19], libc::PACKET_HOST)).is_none());
    }

    #[test]
    fn padding_of_a_short_frame_is_not_part_of_the_packet() {
        assert_eq!(ip_len(&packet()[IP..]), 30);
    }
}
