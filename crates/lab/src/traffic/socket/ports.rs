//! Maps destinations and local ports to connections, so that the sampling thread can identify sockets. Access needs no
//! lock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A connection, in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::traffic) struct Who {
    /// Index among all series of the experiment.
    pub(in crate::traffic) series: u32,
    /// Number of the connection within the series.
    pub(in crate::traffic) connection: u32,
}

#[derive(Debug)]
pub(in crate::traffic) struct Ports {
    /// Encoded connections by local port, for each destination; 0 if the port is unused.
    owners: BTreeMap<IpAddr, Box<[AtomicU64]>>,
}

impl Ports {
    /// Returns unused ports for connections to these destinations, from one local address and to one port. Linux may
    /// use a local port for several destinations at the same time.
    pub(in crate::traffic) fn new(destinations: impl Iterator<Item = IpAddr>) -> Ports {
        let unused = || (0..=u16::MAX).map(|_| AtomicU64::new(0)).collect();
        Ports { owners: destinations.map(|to| (to, unused())).collect() }
    }

    pub(in crate::traffic) fn take(&self, port: u16, to: IpAddr, who: Who) {
        let owner = (u64::from(who.series) + 1) << 32 | u64::from(who.connection);
        self.owners[&to][usize::from(port)].store(owner, Ordering::Relaxed);
    }

    pub(in crate::traffic) fn give_back(&self, port: u16, to: IpAddr) {
        self.owners[&to][usize::from(port)].store(0, Ordering::Relaxed);
    }

    pub(in crate::traffic) fn owner(&self, port: u16, to: IpAddr) -> Option<Who> {
        let owner = self.owners.get(&to)?[usize::from(port)].load(Ordering::Relaxed);
        let series = (owner >> 32).checked_sub(1)? as u32;
        Some(Who { series, connection: owner as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_belongs_to_its_most_recent_connection_to_a_destination() {
        let [near, far] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let ports = Ports::new([near, far, near].into_iter());
        assert_eq!(ports.owner(40_000, near), None);
        let other = Who { series: 5, connection: 9 };
        ports.take(40_000, far, other);
        for (series, connection) in [(0, 0), (7, u32::MAX), (u32::MAX - 1, 3)] {
            let who = Who { series, connection };
            ports.take(40_000, near, who);
            assert_eq!((ports.owner(40_000, near), ports.owner(40_000, far)), (Some(who), Some(other)));
        }
        ports.give_back(40_000, near);
        assert_eq!((ports.owner(40_000, near), ports.owner(40_000, far)), (None, Some(other)));
        assert_eq!(ports.owner(40_000, IpAddr::from([192, 0, 2, 3])), None);
    }
}
