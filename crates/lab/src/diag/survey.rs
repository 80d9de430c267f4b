//! Lists the connections of a network namespace with their cookies and algorithms, over both versions of IP.

use super::bytes::u64_at;
use super::netlink::{Malformed, Netlink, attributes};
use super::sampler::{
    AF_INET, AF_INET6, INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_MSG, SOCK_DIAG_BY_FAMILY, Socket, refused, request,
};
use super::tcp_info::until_zero;
use crate::error::Error;
use rustix::net::netlink::SOCK_DIAG;

/// Requests the connections of this network namespace that are in the selected TCP states.
#[derive(Debug)]
pub struct Survey {
    families: [Netlink; 2],
}

/// A connection at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's id of the socket, which is never reused.
    pub cookie: u64,
    /// Congestion control; empty if the kernel does not report it, as for a destroyed socket.
    pub algorithm: String,
    /// Addresses, TCP state, and state of the algorithm.
    pub socket: Socket,
}

/// Bit mask of ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK and CLOSING.
const OPENED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

const ESTABLISHED: u32 = 1 << 1;

impl Survey {
    /// Prepares to list the established connections.
    ///
    /// # Errors
    /// If the kernel does not support sock_diag.
    pub fn open() -> Result<Survey, Error> {
        Survey::of_states(ESTABLISHED)
    }

    /// Prepares to list the established connections, and those that one or both sides have closed, except TIME-WAIT.
    ///
    /// # Errors
    /// If the kernel does not support sock_diag.
    pub fn of_all_states() -> Result<Survey, Error> {
        Survey::of_states(OPENED)
    }

    fn of_states(states: u32) -> Result<Survey, Error> {
        let open = |family| Netlink::open(Some(SOCK_DIAG), SOCK_DIAG_BY_FAMILY, &request(family, states));
        let families = [open(AF_INET).map_err(refused)?, open(AF_INET6).map_err(refused)?];
        Ok(Survey { families })
    }

    /// Passes the connections, except reset ones and orphans in FIN-WAIT-2. Their snapshots are not taken at the same
    /// moment.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is malformed; a new survey is then needed.
    pub fn dump(&mut self, each: &mut dyn FnMut(Connection)) -> Result<(), Error> {
        for family in &mut self.families {
            family.dump("TCP connections", &refused, &mut |body| {
                if is_remnant(body) {
                    return Ok(());
                }
                let connection = Connection::parse(body)?;
                if !connection.socket.info.is_closed() {
                    each(connection);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns whether the kernel keeps only the addresses of a connection, which is an orphan in FIN-WAIT-2.
pub(super) fn is_remnant(body: &[u8]) -> bool {
    let attributes = body.get(INET_DIAG_MSG..).map(attributes);
    attributes.is_some_and(|mut all| all.all(|attribute| attribute.is_ok_and(|(kind, _)| kind != INET_DIAG_INFO)))
}

impl Connection {
    /// Parses `struct inet_diag_msg` and the attributes after it.
    pub(super) fn parse(body: &[u8]) -> Result<Connection, Malformed> {
        let socket = Socket::parse(body)?;
        let mut algorithm = String::new();
        for attribute in attributes(&body[INET_DIAG_MSG..]) {
            if let (INET_DIAG_CONG, name) = attribute? {
                algorithm = String::from_utf8_lossy(until_zero(name)).into_owned();
            }
        }
        let cookie = u64_at(body, 44).ok_or("the message of a connection is truncated")?;
        Ok(Connection { cookie, algorithm, socket })
    }
}
