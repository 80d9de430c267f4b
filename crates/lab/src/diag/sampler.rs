//! Samples the connections of a network namespace with one request to the kernel (sock_diag(7)).
//!
//! A dump needs fewer system calls than getsockopt(2) on each connection. The kernel does not lock its entire
//! connection table during a dump: if other connections open or close at the same time, a connection may be missing or
//! repeated.
//!
//! Connections that are reset during the dump are skipped, because their counters are already zero.

use super::bytes::u16_be_at;
use super::netlink::{Consistency, Malformed, Netlink, attributes};
use super::tcp_info::{paces, until_zero};
use super::{CcInfo, TcpInfo};
use crate::error::Error;
use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Requests the connections of this network namespace over one version of IP.
#[derive(Debug)]
pub struct Sampler {
    netlink: Netlink,
    interrupted: u64,
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Local address and port. IPv4-mapped addresses of IPv6 sockets keep the kernel's form (`::ffff:192.0.2.1`).
    pub local: SocketAddr,
    /// Address and port of the peer.
    pub remote: SocketAddr,
    /// TCP state and counters.
    pub info: TcpInfo,
    /// State of the congestion control.
    pub cc: CcInfo,
}

pub(super) const SOCK_DIAG_BY_FAMILY: u16 = 20;
pub(super) const AF_INET: u8 = 2;
pub(super) const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

/// Length of `struct inet_diag_msg` in bytes; attributes follow it.
pub(super) const INET_DIAG_MSG: usize = 72;
pub(super) const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
pub(super) const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_DCTCPINFO: u16 = 9;
const INET_DIAG_BBRINFO: u16 = 16;

/// Requested attributes: bit `n - 1` requests attribute `n`. The bit of Vegas also requests the attributes of DCTCP and
/// BBR, whose numbers exceed this byte.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1) | 1 << (INET_DIAG_CONG - 1);

/// Bit mask of ESTABLISHED, FIN-WAIT-1, CLOSE-WAIT, LAST-ACK and CLOSING.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11;

/// Encodes `struct inet_diag_req_v2`. Its zero addresses and ports match all connections.
pub(super) fn request(family: u8, states: u32) -> [u8; 56] {
    let mut request = [0; 56];
    request[..3].copy_from_slice(&[family, IPPROTO_TCP, EXTENSIONS]);
    request[4..8].copy_from_slice(&states.to_ne_bytes());
    request
}

impl Sampler {
    /// Prepares to sample the connections over IPv4, or over IPv6.
    ///
    /// # Errors
    /// If the kernel does not support sock_diag.
    pub fn open(is_ipv6: bool) -> Result<Sampler, Error> {
        let question = request(if is_ipv6 { AF_INET6 } else { AF_INET }, STATES);
        let netlink = Netlink::open(Some(SOCK_DIAG), SOCK_DIAG_BY_FAMILY, &question).map_err(refused)?;
        Ok(Sampler { netlink, interrupted: 0 })
    }

    /// Passes the TCP connections that may still send data or wait for acknowledgements. Their snapshots are not taken
    /// at the same moment.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is malformed; a new sampler is then needed.
    pub fn dump(&mut self, each: &mut dyn FnMut(&Socket)) -> Result<(), Error> {
        let consistency = self.netlink.dump("TCP connections", &refused, &mut |body| {
            let socket = Socket::parse(body)?;
            if !socket.info.is_closed() {
                each(&socket);
            }
            Ok(())
        })?;
        // An interrupted dump is not repeated, because its answers are valid.
        self.interrupted += u64::from(consistency == Consistency::Interrupted);
        Ok(())
    }

    /// Returns the number of dumps that the kernel marked as inconsistent.
    pub fn interrupted(&self) -> u64 {
        self.interrupted
    }
}

pub(super) fn refused(errno: Errno) -> Error {
    let hint = match errno {
        Errno::NOENT | Errno::PROTONOSUPPORT => {
            "use a kernel with CONFIG_INET_DIAG and CONFIG_INET_TCP_DIAG, or load the module: sudo modprobe tcp_diag"
        }
        _ => "check whether `ss -ti` works; close other programs and try again",
    };
    Error::new("no-inet-diag", format!("the kernel does not list TCP connections: {errno}"), hint)
}

/// Returns an address and port of `struct inet_diag_msg`, from their offsets.
fn address(body: &[u8], port: usize, at: usize) -> Option<SocketAddr> {
    let port = u16_be_at(body, port)?;
    let bytes: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
    let [a, b, c, d, ..] = bytes;
    let address = match body[0] {
        AF_INET => IpAddr::from(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::from(Ipv6Addr::from(bytes)),
    };
    Some(SocketAddr::new(address, port))
}

impl Socket {
    /// Parses `struct inet_diag_msg` and the attributes after it.
    pub(super) fn parse(body: &[u8]) -> Result<Socket, Malformed> {
        let addresses = address(body, 4, 8).zip(address(body, 6, 24));
        let ((local, remote), rest) =
            addresses.zip(body.get(INET_DIAG_MSG..)).ok_or("the message of a connection is truncated")?;
        let mut info = None;
        let mut cc = None;
        // The report of a destroyed socket has no algorithm, and its pacing is unknown.
        let mut is_paced = false;
        for attribute in attributes(rest) {
            match attribute? {
                (INET_DIAG_INFO, bytes) => {
                    info = Some(TcpInfo::parse(bytes).ok_or("a tcp_info is shorter than that of Linux 5.10")?);
                }
                (INET_DIAG_BBRINFO, bytes) => cc = CcInfo::parse_bbr(bytes),
                (INET_DIAG_VEGASINFO, bytes) => cc = CcInfo::parse_vegas(bytes),
                (INET_DIAG_DCTCPINFO, bytes) => cc = CcInfo::parse_dctcp(bytes),
                (INET_DIAG_CONG, name) => is_paced = paces(until_zero(name)),
                _ => {}
            }
        }
        let mut info = info.ok_or("a connection has no tcp_info")?;
        if !is_paced {
            info.pacing_rate_bps = None;
        }
        Ok(Socket { local, remote, info, cc: cc.unwrap_or_default() })
    }
}
