//! What the algorithms that the agent carries count: read from their maps in the kernel.

use super::RULES;
use super::built_in::RULE_MAP;
use super::registered::Registered;
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

/// The sums over all CPUs, since the algorithm was loaded: `struct counters` in bpf/cc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that have taken it.
    pub flows_begun: u64,
    /// Connections that have closed, or taken another.
    pub flows_ended: u64,
    /// ACKs that it has handled.
    pub acks: u64,
    /// ACKs at which the rule of `bbr_cpu` has changed what BBR does; `None` for other algorithms.
    pub boosted_acks: Option<u64>,
}

/// Members of the structures in the kernel: with `boosted_acks`, and without.
const MEMBERS: [usize; 2] = [4, 3];

impl Counters {
    /// The counters of an algorithm; `None` if it is not one that the agent carries.
    pub fn of(algorithm: &Registered) -> Option<Counters> {
        let (members, map) = MEMBERS.into_iter().find_map(|members| {
            let size = u32::try_from(8 * members).expect("a small structure");
            Some((members, algorithm.used_map("counters", size)?))
        })?;
        let mut sums = vec![0u64; members];
        for cpu in map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?? {
            for (sum, bytes) in sums.iter_mut().zip(cpu.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
            }
        }
        Some(Counters { flows_begun: sums[0], flows_ended: sums[1], acks: sums[2], boosted_acks: sums.get(3).copied() })
    }

    /// Connections that use it now.
    pub fn live_flows(&self) -> u64 {
        self.flows_begun.saturating_sub(self.flows_ended)
    }
}

/// The rule that an algorithm follows, if it is `bbr_cpu`.
pub fn rule_of(algorithm: &Registered) -> Option<&'static str> {
    let value = algorithm.used_map(RULE_MAP, 4)?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
    let number = u32::from_ne_bytes(value.try_into().ok()?);
    RULES.get(number as usize).copied()
}
