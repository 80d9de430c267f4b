//! Decides whether a relay's lateness or drops could have changed the result of an experiment.
//!
//! **Drops.** TCP reacts to a single loss, so no drop by the kernel is acceptable.
//!
//! **Lateness.** Links compute departures from the kernel's receive timestamps, so lateness does not change a queue: it
//! adds to the round-trip time of packets, like jitter. There are three limits.
//!
//! - The *usual* lateness, the 99th percentile, may be as much as the largest of
//!   1 ms, a jiffy of a kernel with HZ=1000;
//!   5 % of the empty path's RTT;
//!   the transmission time of a full-sized packet: then packets are displaced by about one position at most.
//! - The *rare* lateness, the 99.9th percentile, may be as much as the largest of 4 ms, an eighth of the RTT, and a
//!   packet's transmission time. HyStart++ ends slow start if the minimum RTT of a round grows by an eighth, but at
//!   least 4 ms and at most 16 ms (RFC 9406, section 4.2).
//! - The *worst* lateness, of a single pause, may be up to 5 ms plus half of the RTT including the mean queueing delay.
//!   A longer pause can make senders retransmit packets that were not lost: a tail loss probe is sent after two RTTs
//!   without an ACK (RFC 8985, section 7.2), to which Linux adds at least 2 ms. Half of an RTT leaves a margin for
//!   pauses of the hosts.

use thalweg_units::Span;

const USUAL_LEAST: Span = Span::from_millis(1);
/// Share of the RTT up to which the usual lateness is acceptable.
const USUAL_RTTS: (u64, u64) = (1, 20);
const RARE_LEAST: Span = Span::from_millis(4);
/// Share of the RTT up to which the rare lateness is acceptable.
const RARE_RTTS: (u64, u64) = (1, 8);
const WORST_LEAST: Span = Span::from_millis(5);
/// Share of the RTT with the mean queueing delay that is acceptable in addition to [`WORST_LEAST`].
const WORST_RTTS: (u64, u64) = (1, 2);

/// Input of the decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Round-trip time of the empty path.
    pub rtt: Span,
    /// Transmission time of a full-sized packet on the forward link, or on the reverse link if flows go up and it is
    /// faster, averaged over the experiment.
    pub packet_time: Span,
    /// Mean delay in the forward link's queue, or in the reverse one's if data only goes up.
    pub queueing: Span,
    /// 99th percentile of the lateness.
    pub usual_lateness_us: f64,
    /// 99.9th percentile of the lateness.
    pub rare_lateness_us: f64,
    /// Maximum lateness.
    pub worst_lateness_us: f64,
    /// Number of packets that were lost between the hosts' kernels and the relay.
    pub dropped: u64,
    /// Number of packets that are missing from the capture.
    pub not_captured: u64,
    /// Whether the relay had real-time priority.
    pub is_realtime: bool,
}

/// Returns the reasons why the experiment is untrustworthy; empty if it is trustworthy.
pub(super) fn doubts(figures: &Figures) -> Vec<String> {
    let mut doubts = Vec::new();
    let cure = if figures.is_realtime {
        "close other programs, run fewer experiments at a time, lower the rate, or use --engine uml or sim, whose time \
         is virtual"
    } else {
        "run as root, which gives the relay SCHED_FIFO, close other programs, run fewer experiments at a time, lower \
         the rate, or use --engine uml or sim, whose time is virtual"
    };
    if figures.dropped > 0 {
        let dropped = figures.dropped;
        doubts.push(format!(
            "the kernel dropped {} between the hosts and the relay, outside the emulated path: {cure}",
            packets(dropped)
        ));
    }
    let rtt_ms = milliseconds(figures.rtt);
    let part = |span: Span, (of, over): (u64, u64)| span.scale(of, over);
    let usual = USUAL_LEAST.max(part(figures.rtt, USUAL_RTTS)).max(figures.packet_time);
    let rare = RARE_LEAST.max(part(figures.rtt, RARE_RTTS)).max(figures.packet_time);
    let limits = [("a hundred", figures.usual_lateness_us, usual), ("a thousand", figures.rare_lateness_us, rare)];
    for (packets, lateness_us, limit) in limits {
        if lateness_us > microseconds(limit) {
            doubts.push(format!(
                "the relay sent one packet in {packets} at least {:.1} ms late; {:.1} ms is acceptable (RTT \
                 {rtt_ms:.1} ms): {cure}",
                lateness_us / 1e3,
                milliseconds(limit),
            ));
        }
    }
    let worst = WORST_LEAST + part(figures.rtt + figures.queueing, WORST_RTTS);
    if figures.worst_lateness_us > microseconds(worst) {
        doubts.push(format!(
            "the relay paused for {:.1} ms; {:.1} ms is acceptable (RTT {rtt_ms:.1} ms, queue {:.1} ms): {cure}",
            figures.worst_lateness_us / 1e3,
            milliseconds(worst),
            milliseconds(figures.queueing),
        ));
    }
    if figures.not_captured > 0 {
        let missing = packets(figures.not_captured);
        doubts.push(format!(
            "{missing} are missing from the capture and from the table of packets because the disk was too slow: write \
             to a faster disk, or lower the rate"
        ));
    }
    doubts
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".to_owned() } else { format!("{count} packets") }
}

fn microseconds(span: Span) -> f64 {
    span.0 as f64 / 1e3
}

fn milliseconds(span: Span) -> f64 {
    span.0 as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Figures = Figures {
        rtt: Span::from_millis(40),
        packet_time: Span::from_micros(120),
        queueing: Span::ZERO,
        usual_lateness_us: 100.0,
        rare_lateness_us: 1_500.0,
        worst_lateness_us: 2_000.0,
        dropped: 0,
        not_captured: 0,
        is_realtime: false,
    };

    #[test]
    fn slight_lateness_of_the_relay_is_accepted() {
        assert_eq!(doubts(&GOOD), [""; 0]);
        // Just within the limits: 5 % and an eighth of 40 ms, and 5 ms plus half of 40 ms.
        let edge =
            Figures { usual_lateness_us: 1_999.0, rare_lateness_us: 4_999.0, worst_lateness_us: 24_999.0, ..GOOD };
        assert_eq!(doubts(&edge), [""; 0]);
    }

    #[test]
    fn a_single_packet_dropped_by_the_kernel_is_reported() {
        let doubts = doubts(&Figures { dropped: 1, ..GOOD });
        assert!(matches!(&doubts[..], [only] if only.contains("dropped 1 packet between")), "{doubts:?}");
    }

    #[test]
    fn lateness_above_a_limit_is_reported_with_value_limit_and_remedy() {
        let usual = doubts(&Figures { usual_lateness_us: 2_100.0, ..GOOD });
        assert!(matches!(&usual[..], [only] if only.contains("2.1 ms late") && only.contains("2.0 ms is acceptable")));
        let rare = doubts(&Figures { rare_lateness_us: 5_100.0, ..GOOD });
        assert!(matches!(&rare[..], [only] if only.contains("at least 5.1 ms late") && only.contains("5.0 ms is")));
        let worst = doubts(&Figures { worst_lateness_us: 25_100.0, ..GOOD });
        assert!(matches!(&worst[..], [only] if only.contains("25.1 ms; 25.0 ms") && only.contains("as root")));
    }

    #[test]
    fn lateness_limits_grow_with_rtt_packet_time_and_queueing() {
        let late = Figures { usual_lateness_us: 4_000.0, ..GOOD };
        assert_eq!(doubts(&late).len(), 1);
        assert!(doubts(&Figures { rtt: Span::from_millis(100), ..late }).is_empty());
        assert!(doubts(&Figures { packet_time: Span::from_millis(12), ..late }).is_empty());
        let paused = Figures { worst_lateness_us: 30_000.0, ..GOOD };
        assert_eq!(doubts(&paused).len(), 1);
        assert!(doubts(&Figures { queueing: Span::from_millis(20), ..paused }).is_empty());
        let short = Figures { rtt: Span::from_millis(1), usual_lateness_us: 900.0, worst_lateness_us: 5_400.0, ..GOOD };
        assert!(doubts(&short).is_empty());
    }

    #[test]
    fn root_is_not_advised_to_run_as_root() {
        let doubts = doubts(&Figures { dropped: 9, is_realtime: true, ..GOOD });
        assert!(doubts[0].contains("9 packets") && !doubts[0].contains("root"), "{doubts:?}");
    }

    #[test]
    fn packets_missing_in_the_capture_are_reported() {
        assert!(doubts(&Figures { not_captured: 3, ..GOOD })[0].contains("3 packets are missing from the capture"));
    }
}
