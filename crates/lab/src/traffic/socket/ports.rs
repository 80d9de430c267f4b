//! Maps local ports to connections, so that the sampling thread can identify sockets. Access needs no lock.

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
    /// Encoded connection, by port; 0 if the port is unused.
    owners: Box<[AtomicU64]>,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { owners: (0..=u16::MAX).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Ports {
    pub(in crate::traffic) fn take(&self, port: u16, who: Who) {
        let owner = (u64::from(who.series) + 1) << 32 | u64::from(who.connection);
        self.owners[usize::from(port)].store(owner, Ordering::Relaxed);
    }

    pub(in crate::traffic) fn give_back(&self, port: u16) {
        self.owners[usize::from(port)].store(0, Ordering::Relaxed);
    }

    pub(in crate::traffic) fn owner(&self, port: u16) -> Option<Who> {
        let owner = self.owners[usize::from(port)].load(Ordering::Relaxed);
        let series = (owner >> 32).checked_sub(1)? as u32;
        Some(Who { series, connection: owner as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_belongs_to_its_most_recent_connection() {
        let ports = Ports::default();
        assert_eq!(ports.owner(40_000), None);
        for (series, connection) in [(0, 0), (7, u32::MAX), (u32::MAX - 1, 3)] {
            let who = Who { series, connection };
            ports.take(40_000, who);
            assert_eq!(ports.owner(40_000), Some(who));
        }
        ports.give_back(40_000);
        assert_eq!(ports.owner(40_000), None);
    }
}
