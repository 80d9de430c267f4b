//! Assigns a processor to each guest.
//!
//! A guest is several processes of which one runs at a time: a system call of a program in it switches to the kernel's
//! process and back, which takes longer between two processors.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A processor that is reserved for one guest.
#[derive(Debug)]
pub(super) struct Seat {
    /// Abstract socket name that only one process can bind, and that the kernel releases when the process exits.
    _name: UnixDatagram,
}

impl Seat {
    /// Reserves a processor for this thread and the processes that it starts later; `None` if all are reserved.
    pub(super) fn take(kind: &str) -> Option<Seat> {
        let allowed = sched_getaffinity(None).ok()?;
        // Tried first, because the scheduler has just selected it.
        let current = sched_getcpu();
        let other_cpus = (0..CpuSet::MAX_CPU).filter(|cpu| *cpu != current);
        let take = |cpu: usize| {
            let name = SocketAddr::from_abstract_name(format!("{kind}-on-cpu-{cpu}")).ok()?;
            let name = UnixDatagram::bind_addr(&name).ok()?;
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).ok()?;
            Some(Seat { _name: name })
        };
        [current]
            .into_iter()
            .chain(other_cpus)
            .filter(|cpu| *cpu < CpuSet::MAX_CPU && allowed.is_set(*cpu))
            .find_map(take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn processors() -> Vec<usize> {
        let allowed = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
    }

    #[test]
    fn each_guest_gets_a_separate_processor_while_processors_are_left() {
        let kind = format!("thalweg-test-{}", std::process::id());
        let allowed = processors();
        let take_seat = || thread::scope(|scope| scope.spawn(|| (Seat::take(&kind), processors())).join().unwrap());
        let mut seats: Vec<_> = allowed.iter().map(|_| take_seat()).collect();
        let mut taken: Vec<usize> = seats.iter().flat_map(|(_, processors)| processors.clone()).collect();
        taken.sort_unstable();
        assert_eq!(taken, allowed);
        let (seat, anywhere) = take_seat();
        assert!(seat.is_none() && anywhere == allowed, "{anywhere:?}");
        let (_, free) = seats.remove(0);
        assert_eq!(take_seat().1, free, "who has gone leaves it to others");
    }
}
