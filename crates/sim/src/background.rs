//! UDP sources: a packet of the path's MTU at a constant rate, whatever happens to it.

use thalweg_plan::plan::Background;
use thalweg_units::{MTU, Time};

#[derive(Clone, Debug)]
pub(crate) struct Source {
    config: Background,
    sent: u64,
}

impl Source {
    pub(crate) fn new(config: &Background) -> Source {
        Source { config: config.clone(), sent: 0 }
    }

    /// When the next packet leaves. Counted from the start, so that rounding does not add up.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        if self.config.rate_bps.0 == 0 {
            return None;
        }
        let bytes = u128::from(self.sent) * u128::from(MTU.0);
        let nanos = bytes * 8 * 1_000_000_000 / u128::from(self.config.rate_bps.0);
        let at = self.config.start_ns.0.checked_add(u64::try_from(nanos).ok()?)?;
        self.config.stop_ns.is_none_or(|stop| at < stop.0).then_some(Time(at))
    }

    pub(crate) fn sent(&mut self) {
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Rate;

    #[test]
    fn packets_leave_at_the_rate_between_start_and_stop() {
        let config =
            Background { rate_bps: Rate::from_mbps(12), start_ns: Time(5_000), stop_ns: Some(Time(3_005_000)) };
        let mut source = Source::new(&config);
        let mut departures = Vec::new();
        while let Some(at) = source.next_departure() {
            departures.push(at.0);
            source.sent();
        }
        // 1500 bytes at 12 Mbit/s: one millisecond each; the stop itself is too late.
        assert_eq!(departures, [5_000, 1_005_000, 2_005_000]);
    }
}
