//! How long the relay may sleep before something is due.
//!
//! A sleeping processor needs tens of microseconds to wake up, more in a virtual machine. So we ask to be woken up
//! earlier, by what is usually overslept (the *lead*), and go round without sleep for the little that is left.
//!
//! Where packets follow one another faster than that, it would mean never to sleep: each packet would cost a call of
//! its own, and the kernel takes the processor away for a while from a real-time thread that never sleeps, 50 ms in
//! every second (sched(7), `sched_rt_runtime_us`; since Linux 6.12 only if others wait, "fair server"). So after a time
//! in which it slept too little the relay is *tired*: it sleeps a little longer than it should, and sends what is due
//! meanwhile in one batch. Many packets are then some tens of microseconds late, instead of some tens of milliseconds.

use thalweg_units::{Span, Time};

/// The most that we ask to be woken up too early.
const LONGEST_LEAD: Span = Span::from_micros(100);
/// Over which time sleep is counted.
const WINDOW: Span = Span::from_millis(10);
/// Less sleep than this part of it makes tired: six times of what the kernel wants by default.
const TOO_LITTLE: (u64, u64) = (1, 3);
/// A larger share of sleep than this counts as rested. Below it, the thread would be tired again at once.
const PLENTY: (u64, u64) = (3, 4);
/// The least that a tired relay sleeps: six full-sized packets at 1.5 Gbit/s.
const NAP: Span = Span::from_micros(50);

/// What is remembered of earlier sleep.
#[derive(Debug, Default)]
pub(super) struct Rest {
    lead: Span,
    window_began: Time,
    slept: Span,
    is_tired: bool,
}

impl Rest {
    /// How long to sleep if something is due after `wait`; nothing: not at all.
    pub fn before(&mut self, now: Time, wait: Span) -> Option<Span> {
        let length = now.since(self.window_began);
        if length >= WINDOW {
            let (of, over) = if self.is_tired { PLENTY } else { TOO_LITTLE };
            self.is_tired = self.slept < length.scale(of, over);
            (self.window_began, self.slept) = (now, Span::ZERO);
        }
        if self.is_tired {
            return Some(wait.max(NAP));
        }
        Some(wait.saturating_sub(self.lead)).filter(|asleep| *asleep > Span::ZERO)
    }

    /// We meant to sleep for `asleep` from `from` on, and woke up at `now`.
    pub fn woke(&mut self, from: Time, asleep: Span, now: Time) {
        self.was_asleep(from, now);
        let overslept = now.since(from).saturating_sub(asleep).min(LONGEST_LEAD);
        // A running mean.
        self.lead = Span((self.lead.0 * 15 + overslept.0) / 16);
    }

    /// We slept until something came, or because nothing was due for long.
    pub fn was_asleep(&mut self, from: Time, now: Time) {
        self.slept += now.since(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// A relay on a simulated processor.
    #[derive(Default)]
    struct Life {
        rest: Rest,
        now: Time,
    }

    impl Life {
        /// Something is due every `gap_us` after the last was done, which takes `work_us`; sleep is `over_us` too long.
        /// Returns the share of time asleep, and how late the last thing was done.
        fn go_on(&mut self, (gap_us, work_us, over_us): (u64, u64, u64), rounds: u32) -> (f64, Span) {
            let (began, mut asleep, mut late) = (self.now, 0, Span::ZERO);
            for _ in 0..rounds {
                let due = self.now + Span(gap_us * US);
                while self.now < due {
                    let from = self.now;
                    match self.rest.before(from, due.since(from)) {
                        Some(sleep) => {
                            self.now += sleep + Span(over_us * US);
                            self.rest.woke(from, sleep, self.now);
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
        let mut life = Life::default();
        assert_eq!(life.go_on((500, 10, 40), 1).1, Span(40 * US));
        let (asleep, late) = life.go_on((500, 10, 40), 500);
        assert!(late <= Span(US), "{late:?}");
        assert!(asleep > 0.9, "{asleep}");
    }

    #[test]
    fn with_dense_packets_the_relay_sleeps_a_third_of_the_time_and_is_slightly_late() {
        let mut life = Life::default();
        life.go_on((500, 10, 40), 500);
        let (asleep, late) = life.go_on((3, 5, 40), 50_000);
        assert!(asleep > 0.33, "{asleep}");
        assert!(late <= NAP + Span(40 * US), "{late:?}");
    }

    #[test]
    fn a_relay_that_slept_too_little_is_punctual_again_when_packets_become_rare() {
        let mut life = Life::default();
        life.rest.is_tired = true;
        assert!(life.go_on((20, 10, 40), 1).1 > Span::ZERO);
        let (_, late) = life.go_on((500, 10, 40), 500);
        assert!(!life.rest.is_tired && late <= Span(US), "{late:?}");
    }

    #[test]
    fn a_single_oversleep_changes_the_lead_only_slightly() {
        let mut life = Life::default();
        life.go_on((500, 10, 40), 500);
        let before = life.rest.lead;
        life.rest.woke(Time::ZERO, Span(500 * US), Time(50_000 * US));
        assert!(life.rest.lead < before + Span(5 * US), "{:?}", life.rest.lead);
    }
}
