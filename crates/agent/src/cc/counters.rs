//! Counters and settings of loaded algorithms, read from their maps.

use super::BuiltIn;
use super::registered::Registered;
use super::settable::{NO_RULE, Settings};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;
use std::ffi::OsStr;

/// Counters since the algorithm was loaded, summed over all CPUs: `struct counters` in bpf/cc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Number of times that a connection began to use the algorithm.
    pub flows_begun: u64,
    /// Number of times that a connection closed or switched to another algorithm.
    pub flows_ended: u64,
    /// Number of handled ACKs.
    pub acks: u64,
    /// Number of ACKs at which a rule raised the pacing rate; `None` without a rule.
    pub boosted_acks: Option<u64>,
}

/// Number of members of that structure: with `boosted_acks`, and without.
const MEMBERS: [usize; 2] = [4, 3];

impl Counters {
    /// Reads the counters of an algorithm; `None` without a readable map of this structure.
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
        let has_rule = settings_of(algorithm).contains_key("rule");
        let boosted_acks = sums.get(3).copied().filter(|_| has_rule);
        Some(Counters { flows_begun: sums[0], flows_ended: sums[1], acks: sums[2], boosted_acks })
    }

    /// Returns the number of connections that use the algorithm now.
    pub fn live_flows(&self) -> u64 {
        self.flows_begun.saturating_sub(self.flows_ended)
    }
}

/// Reads the settings with which a built-in algorithm was loaded, without BBR parameters that equal their defaults, and
/// without the rule `none`. Empty if they cannot be read.
pub fn settings_of(algorithm: &Registered) -> Settings {
    let read = || {
        let settable = &BuiltIn::find(OsStr::new(&algorithm.name))?.settable;
        let size = u32::try_from(settable.size()).expect("a small section");
        let map = algorithm.used_map(settable.section(), size)?;
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(settable.read(&value))
    };
    let mut settings = read().unwrap_or_default();
    settings.retain(|_, value| value != NO_RULE);
    settings
}
