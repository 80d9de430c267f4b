//! Random decisions of a queue discipline, and its flow hash.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Random number generator of one queue.
#[derive(Debug)]
pub(crate) struct Dice {
    stream: Xoshiro256PlusPlus,
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice { stream: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Returns a random number in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns `true` with this probability.
    pub fn is_below(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

/// Maps each flow to a fixed sub-queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHash {
    seed: u64,
    buckets: u32,
}

impl FlowHash {
    pub fn new(seed: u64, buckets: u32) -> FlowHash {
        FlowHash { seed, buckets }
    }

    /// Returns the index of a flow's sub-queue.
    pub fn bucket(&self, flow: u64) -> usize {
        // The finalizer of splitmix64 spreads every bit of the flow over all bits of the result.
        let mut bits = flow.wrapping_add(self.seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * u128::from(self.buckets)) >> 64) as usize
    }
}
