//! Messages of constant size at a constant interval, whether or not earlier ones have arrived: the frames of a call, or
//! probes.
//!
//! A call freezes if the gap between the arrivals of two frames exceeds both three intervals and one interval plus the
//! call's `freeze`. With `freeze` = 150 ms this resembles `freezeCount` in W3C's webrtc-stats. The duration of the
//! freeze is the gap less one interval.

use crate::app::message::{Delivery, Item, Message, Wake};
use thalweg_units::{Bytes, Span, Time};

/// The frames of a call, or probes.
#[derive(Clone, Debug)]
pub struct Periodic {
    size: Bytes,
    interval: Span,
    /// The call's `freeze`; `None` for probes, which are not displayed.
    freeze: Option<Span>,
    sent: u64,
    next_at: Option<Time>,
    last_arrival: Option<Time>,
}

impl Periodic {
    pub(super) fn new(size: Bytes, interval: Span, freeze: Option<Span>) -> Periodic {
        Periodic { size, interval, freeze, sent: 0, next_at: None, last_arrival: None }
    }

    pub(super) fn wake(&mut self, now: Time) -> Wake {
        let mut due = *self.next_at.get_or_insert(now);
        let mut messages = Vec::new();
        while due <= now {
            let item = Item { number: self.sent, bitrate: None };
            messages.push(Message { connection: 0, size: self.size, due, item });
            self.sent += 1;
            due += self.interval;
        }
        self.next_at = Some(due);
        Wake { messages, next: Some(due) }
    }

    pub(super) fn delivered(&mut self, now: Time) -> Delivery {
        let stall = self.stall(now);
        self.last_arrival = Some(now);
        Delivery { stall, ..Delivery::default() }
    }

    fn stall(&self, now: Time) -> Option<Span> {
        let freeze = self.freeze?;
        let Some(last) = self.last_arrival else { return Some(Span::ZERO) };
        let gap = now.since(last);
        let is_frozen = gap > self.interval.scale(3, 1).max(self.interval + freeze);
        Some(if is_frozen { gap.saturating_sub(self.interval) } else { Span::ZERO })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn call() -> Periodic {
        Periodic::new(Bytes(6250), Span::from_millis(33), Some(Span::from_millis(150)))
    }

    #[test]
    fn a_late_wakeup_sends_every_frame_that_was_due() {
        let mut call = call();
        assert_eq!(call.wake(Time(5 * MS)).next, Some(Time(38 * MS)));
        let wake = call.wake(Time(80 * MS));
        let due: Vec<u64> = wake.messages.iter().map(|message| message.due.0 / MS).collect();
        assert_eq!((due, wake.next), (vec![38, 71], Some(Time(104 * MS))));
    }

    #[test]
    fn a_gap_of_more_than_the_limit_is_a_freeze() {
        let mut call = call();
        call.delivered(Time(100 * MS));
        assert_eq!(call.delivered(Time(283 * MS)).stall, Some(Span::ZERO), "183 ms are just the limit");
        assert_eq!(call.stall(Time(467 * MS)), Some(Span::from_millis(151)), "it freezes while the frame is missing");
        assert_eq!(call.delivered(Time(483 * MS)).stall, Some(Span::from_millis(167)));
        assert_eq!(call.delivered(Time(483 * MS)).stall, Some(Span::ZERO), "frames that waited behind it come at once");
    }

    #[test]
    fn gaps_of_a_probe_are_not_freezes() {
        let mut probe = Periodic::new(Bytes(64), Span::from_millis(200), None);
        probe.delivered(Time(0));
        assert_eq!(probe.delivered(Time(9_000 * MS)).stall, None);
    }
}
