//! What `bbr_cpu` counts: read from its map in the kernel.

use super::RULES;
use super::object::RULE_MAP;
use super::registered::Registered;
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

/// The sums over all CPUs, since the algorithm was loaded: `struct counters` in bpf/cc/bbr_cpu/bbr_cpu.bpf.c.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that have taken it.
    pub flows_begun: u64,
    /// Connections that have closed, or taken another.
    pub flows_ended: u64,
    /// ACKs that it has handled.
    pub acks: u64,
    /// ACKs at which its rule has changed what BBR does.
    pub boosted_acks: u64,
}

/// Members of the kernel's structure.
const MEMBERS: usize = 4;

impl Counters {
    /// The counters of an algorithm; none if it does not count as `bbr_cpu` does.
    pub fn of(algorithm: &Registered) -> Option<Counters> {
        let map = algorithm.used_map("counters", 8 * MEMBERS as u32)?;
        let cpus = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        let mut sums = [0u64; MEMBERS];
        for cpu in cpus {
            for (sum, bytes) in sums.iter_mut().zip(cpu.chunks_exact(8)) {
                *sum += u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
            }
        }
        let [flows_begun, flows_ended, acks, boosted_acks] = sums;
        Some(Counters { flows_begun, flows_ended, acks, boosted_acks })
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
