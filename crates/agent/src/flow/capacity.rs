//! Computes the capacity of the BPF programs' connection table (bpf/flow/table.h).

/// Kernel memory per connection in bytes: `struct flow`, its cookie, and its share of the hash table.
const CONNECTION_BYTES: u64 = 448;

/// Divisor N: by default, the table may use 1/N of the machine's memory.
const MEMORY_PART: u64 = 100;

/// Minimum default capacity, even if it exceeds that part of the memory.
const MIN_CONNECTIONS: u32 = 1 << 14;

const MAX_CONNECTIONS: u32 = 1 << 17;

const WAYS: u32 = 8;

/// Number of sets per overflow slot.
const SETS_PER_MORE: u32 = 2;

/// Capacity for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of sets, a power of two.
    pub sets: u32,
}

impl Capacity {
    /// Returns a capacity of at least `count` connections, for `count` below 2^31.
    pub fn for_connections(count: u32) -> Capacity {
        Capacity { sets: count.div_ceil(WAYS).next_power_of_two() }
    }

    /// Returns the default capacity of a machine with this amount of memory.
    pub fn on_machine(memory_bytes: u64) -> Capacity {
        let count = u32::try_from(memory_bytes / MEMORY_PART / CONNECTION_BYTES)
            .unwrap_or(u32::MAX)
            .clamp(MIN_CONNECTIONS, MAX_CONNECTIONS);
        // Rounded down to a power of two.
        Capacity { sets: 1 << (count / WAYS).ilog2() }
    }

    /// Returns the number of slots in the sets.
    pub fn places(self) -> u32 {
        self.sets * WAYS
    }

    /// Returns the number of overflow slots, for connections whose set is full.
    pub fn more(self) -> u32 {
        (self.sets / SETS_PER_MORE).max(1)
    }

    /// Returns the mask that selects the set of a connection.
    pub fn set_mask(self) -> u64 {
        u64::from(self.sets - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_capacity_is_the_number_of_connections_that_fit_into_1_percent_of_memory() {
        assert_eq!(Capacity::on_machine(512_000_000).places(), MIN_CONNECTIONS);
        assert_eq!(Capacity::on_machine(4_480_000_000).places(), 65_536, "100,000 would fit");
        assert_eq!(Capacity::on_machine(1 << 40).places(), MAX_CONNECTIONS);
    }

    #[test]
    fn configured_capacity_is_used() {
        let capacity = |count| Capacity::for_connections(count);
        assert_eq!((capacity(1).places(), capacity(1).more(), capacity(1).set_mask()), (8, 1, 0));
        assert_eq!((capacity(9).places(), capacity(100_000).places()), (16, 131_072));
        assert_eq!(
            (capacity(131_072).sets, capacity(131_072).more(), capacity(131_072).set_mask()),
            (16_384, 8_192, 16_383)
        );
    }
}
