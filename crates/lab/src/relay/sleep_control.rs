//! Controls how long the relay sleeps before an event is due.
//!
//! A sleeping processor needs time to wake up. Therefore, the relay requests its wakeup earlier by the mean oversleep
//! (the *lead*), and polls for the rest of the time.
//!
//! With gaps between packets that are shorter than the lead, the relay would not sleep, and the kernel may suspend a
//! real-time thread that does not sleep (sched(7), `sched_rt_runtime_us`). Therefore, after a window with too little
//! sleep the relay *batches*: it sleeps slightly too long, and sends the packets that became due in one batch.

use thalweg_units::{Span, Time};

const MAX_LEAD: Span = Span::from_micros(100);
/// Interval over which sleep is summed.
const WINDOW: Span = Span::from_millis(10);
/// Share of sleep below which batching starts, above the 5 % that the kernel requires by default.
const BATCHING_BELOW: (u64, u64) = (1, 3);
/// Share of sleep from which batching ends; larger than [`BATCHING_BELOW`], because batching itself increases sleep.
const BATCHING_UNTIL: (u64, u64) = (3, 4);
const MIN_BATCH_SLEEP: Span = Span::from_micros(50);

#[derive(Debug, Default)]
pub(super) struct SleepControl {
    lead: Span,
    window_began: Time,
    slept: Span,
    is_batching: bool,
}

impl SleepControl {
    /// Returns the time to sleep if a packet is due after `wait`; `None` if the relay should poll.
    pub fn sleep_before(&mut self, now: Time, wait: Span) -> Option<Span> {
        let length = now.since(self.window_began);
        if length >= WINDOW {
            let (of, over) = if self.is_batching { BATCHING_UNTIL } else { BATCHING_BELOW };
            self.is_batching = self.slept < length.scale(of, over);
            (self.window_began, self.slept) = (now, Span::ZERO);
        }
        if self.is_batching {
            return Some(wait.max(MIN_BATCH_SLEEP));
        }
        Some(wait.saturating_sub(self.lead)).filter(|asleep| *asleep > Span::ZERO)
    }

    /// Records a sleep from `from` that was requested for `requested` and ended at `now`.
    pub fn record_timed_sleep(&mut self, from: Time, requested: Span, now: Time) {
        self.record_sleep(from, now);
        let overslept = now.since(from).saturating_sub(requested).min(MAX_LEAD);
        // Exponential moving average.
        self.lead = Span((self.lead.0 * 15 + overslept.0) / 16);
    }

    /// Records a sleep that does not change the lead.
    pub fn record_sleep(&mut self, from: Time, now: Time) {
        self.slept += now.since(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[derive(Default)]
    struct SimulatedRelay {
        control: SleepControl,
        now: Time,
    }

    impl SimulatedRelay {
        /// Simulates packets that are due `gap_us` after the previous one was sent; sending takes `work_us`, and each
        /// sleep is `over_us` too long. Returns the share of time asleep, and the lateness of the last packet.
        fn run(&mut self, (gap_us, work_us, over_us): (u64, u64, u64), rounds: u32) -> (f64, Span) {
            let (began, mut asleep, mut late) = (self.now, 0, Span::ZERO);
            for _ in 0..rounds {
                let due = self.now + Span(gap_us * US);
                while self.now < due {
                    let from = self.now;
                    match self.control.sleep_before(from, due.since(from)) {
                        Some(span) => {
                            self.now += span + Span(over_us * US);
                            self.control.record_timed_sleep(from, span, self.now);
                            asleep += self.now.since(from).0;
                        }
                        None => self.now += Span(US),
                    }
                }
                late = self.now.since(due);
                self.now += Span(work_us * US);
            }
            (asleep as f64 / self.now.since(began).0 as f64, late)
        }
    }

    #[test]
    fn the_relay_wakes_up_in_time_after_measuring_its_oversleep() {
        let mut relay = SimulatedRelay::default();
        assert_eq!(relay.run((500, 10, 40), 1).1, Span(40 * US));
        let (asleep, late) = relay.run((500, 10, 40), 500);
        assert!(late <= Span(US), "{late:?}");
        assert!(asleep > 0.9, "{asleep}");
    }

    #[test]
    fn with_dense_packets_the_relay_sleeps_a_third_of_the_time_and_is_slightly_late() {
        let mut relay = SimulatedRelay::default();
        relay.run((500, 10, 40), 500);
        let (asleep, late) = relay.run((3, 5, 40), 50_000);
        assert!(asleep > 0.33, "{asleep}");
        assert!(late <= MIN_BATCH_SLEEP + Span(40 * US), "{late:?}");
    }

    #[test]
    fn a_relay_that_slept_too_little_is_punctual_again_when_packets_become_rare() {
        let mut relay = SimulatedRelay::default();
        relay.control.is_batching = true;
        assert!(relay.run((20, 10, 40), 1).1 > Span::ZERO);
        let (_, late) = relay.run((500, 10, 40), 500);
        assert!(!relay.control.is_batching && late <= Span(US), "{late:?}");
    }

    #[test]
    fn a_single_oversleep_changes_the_lead_only_slightly() {
        let mut relay = SimulatedRelay::default();
        relay.run((500, 10, 40), 500);
        let before = relay.control.lead;
        relay.control.record_timed_sleep(Time::ZERO, Span(500 * US), Time(50_000 * US));
        assert!(relay.control.lead < before + Span(5 * US), "{:?}", relay.control.lead);
    }
}
