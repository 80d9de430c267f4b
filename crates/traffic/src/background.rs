//! UDP sources: a packet of the path's MTU in every interval of the rate, independent of losses.
//!
//! A packet is sent at a random time within its interval. Packets at exactly equal intervals would synchronize with
//! departures from the bottleneck, and fill each slot of the queue as soon as it is free. Real paths are too irregular
//! for this phase effect of drop-tail queues (Floyd and Jacobson, 1992).

use crate::streams::{self, Stream};
use thalweg_plan::plan::Background;
use thalweg_units::{MTU, Time};

/// A UDP source.
#[derive(Clone, Debug)]
pub struct Source {
    config: Background,
    /// Number of packets whose departure has been determined.
    planned: u64,
    stream: Stream,
}

impl Source {
    /// Creates the source before its first packet.
    pub fn new(config: &Background, stream: Stream) -> Source {
        Source { config: config.clone(), planned: 0, stream }
    }

    /// Returns the departure of the next packet; `None` if the source has stopped or its rate is zero. Each call
    /// advances by one packet.
    pub fn next_departure(&mut self) -> Option<Time> {
        let begin = self.interval_start(self.planned)?;
        let end = self.interval_start(self.planned + 1)?;
        self.planned += 1;
        let at = begin + streams::up_to(end.since(begin), &mut self.stream);
        self.config.stop_ns.is_none_or(|stop| at < stop).then_some(at)
    }

    /// Returns the start of a packet's interval, computed from the source's start so that rounding errors do not
    /// accumulate.
    fn interval_start(&self, packet: u64) -> Option<Time> {
        let bits = u128::from(packet) * u128::from(MTU.0) * 8;
        let nanos = (bits * 1_000_000_000).checked_div(u128::from(self.config.rate_bps.0))?;
        let at = self.config.start_ns.0.checked_add(u64::try_from(nanos).ok()?)?;
        Some(Time(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::Streams;
    use thalweg_units::Rate;

    fn departures(rate: Rate, stop: u64) -> Vec<u64> {
        let config = Background { rate_bps: rate, start_ns: Time(5_000), stop_ns: Some(Time(stop)), up: false };
        let mut source = Source::new(&config, Streams::new(1).take());
        std::iter::from_fn(|| source.next_departure()).map(|at| at.0).collect()
    }

    #[test]
    fn each_millisecond_between_start_and_stop_has_its_packet() {
        // 1500 bytes at 12 Mbit/s take one millisecond.
        let departures = departures(Rate::from_mbps(12), 3_005_000);
        assert_eq!(departures.len(), 3);
        for (interval, at) in (0..).zip(&departures) {
            let begin = 5_000 + interval * 1_000_000;
            assert!((begin..begin + 1_000_000).contains(at), "{departures:?}");
        }
    }

    #[test]
    fn packet_intervals_vary() {
        let departures = departures(Rate::from_mbps(12), 9_005_000);
        let gaps: Vec<u64> = departures.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).any(|pair| pair[0] != pair[1]), "{gaps:?}");
    }

    #[test]
    fn a_rate_of_zero_sends_nothing() {
        assert!(departures(Rate::ZERO, u64::MAX).is_empty());
    }
}
