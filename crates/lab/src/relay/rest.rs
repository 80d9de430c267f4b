//! How long the relay may sleep before something is due.
//!
//! A sleeping processor needs tens of microseconds to wake up, more in a virtual machine. So we ask to be woken up earlier,
//! by what is usually overslept (the *lead*), and go round without sleep for the little that is left.
//!
//! Where packets follow one another faster than that, it would mean never to sleep, and the kernel takes the processor away
//! for a while from a real-time thread that never sleeps: 50 ms in every second (sched(7), `sched_rt_runtime_us`; since
//! Linux 6.12 only if others wait, "fair server"). So there is no lead after a time in which we slept too little; we
//! are then a little late for many packets, instead of very late for some.

use thalweg_units::{Span, Time};

/// The most that we ask to be woken up too early.
const LONGEST_LEAD: Span = Span::from_micros(100);
/// Over which time sleep is counted.
const WINDOW: Span = Span::from_millis(10);
/// Less than this of it is too little: 10 %, twice of what the kernel wants by default.
const ENOUGH: (u64, u64) = (1, 10);

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
            let (of, over) = ENOUGH;
            self.is_tired = self.slept < length.scale(of, over);
            (self.window_began, self.slept) = (now, Span::ZERO);
        }
        let lead = if self.is_tired { Span::ZERO } else { self.lead };
        Some(wait.saturating_sub(lead)).filter(|asleep| *asleep > Span::ZERO)
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

    /// Something is due every `gap_us` after the last was done, which takes `work_us`; sleep is `over_us` too long. Returns the
    /// share of time asleep, and by how much things were late in the end.
    fn live(rest: &mut Rest, (gap_us, work_us, over_us): (u64, u64, u64), rounds: u32) -> (f64, Span) {
        let (mut now, mut asleep, mut late) = (Time::ZERO, 0, Span::ZERO);
        for _ in 0..rounds {
            let due = now + Span(gap_us * US);
            while now < due {
                let from = now;
                match rest.before(now, due.since(now)) {
                    Some(sleep) => {
                        now = now + sleep + Span(over_us * US);
                        rest.woke(from, sleep, now);
                        asleep += now.since(from).0;
                    }
                    None => now += Span(US),
                }
            }
            late = now.since(due);
            now += Span(work_us * US);
        }
        (asleep as f64 / now.0 as f64, late)
    }

    #[test]
    fn it_wakes_up_in_time_once_it_knows_what_it_oversleeps() {
        let mut rest = Rest::default();
        assert_eq!(live(&mut rest, (500, 10, 40), 1).1, Span(40 * US));
        let (asleep, late) = live(&mut rest, (500, 10, 40), 500);
        assert!(late <= Span(US), "{late:?}");
        assert!(asleep > 0.9, "{asleep}");
    }

    #[test]
    fn it_sleeps_enough_even_where_packets_follow_closely() {
        let mut rest = Rest::default();
        live(&mut rest, (500, 10, 40), 500);
        let (asleep, _) = live(&mut rest, (3, 5, 40), 50_000);
        assert!(asleep > 0.1, "{asleep}");
    }

    #[test]
    fn an_accident_changes_the_lead_a_little_only() {
        let mut rest = Rest::default();
        live(&mut rest, (500, 10, 40), 500);
        let before = rest.lead;
        rest.woke(Time::ZERO, Span(500 * US), Time(50_000 * US));
        assert!(rest.lead < before + Span(5 * US), "{:?}", rest.lead);
    }
}
