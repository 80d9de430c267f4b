//! The kernel's counters of interfaces: proc_pid_net(5), `/proc/net/dev`.

use std::collections::BTreeMap;

/// Returns the number of packets that each interface of the calling thread's network namespace dropped, in both
/// directions. A drop because of a full backlog (`net.core.netdev_max_backlog`) counts at the receiving interface.
pub(super) fn dropped() -> BTreeMap<String, u64> {
    std::fs::read_to_string("/proc/thread-self/net/dev").map(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> BTreeMap<String, u64> {
    // Columns: bytes packets errs drop fifo frame compressed multicast, then bytes packets errs drop …
    let line = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<u64> = counters.split_whitespace().map_while(|word| word.parse().ok()).collect();
        Some((name.trim().to_owned(), counters.get(3)? + counters.get(11)?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_both_directions_are_summed() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo \
                        colls carrier compressed\n lo:  103184     782    0    0    0     0          0         0   \
                                                      103184 782 0 0 0 0 0 0\n r0: 5 4 3 20 1 0 0 0 50 40 30 7 10 0 0 0\n";
        assert_eq!(parse(text), BTreeMap::from([("lo".to_owned(), 0), ("r0".to_owned(), 27)]));
    }
}
