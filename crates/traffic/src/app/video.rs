//! Adaptive video whose bitrate depends on the playback buffer: BBA-0 of Huang, Johari, McKeown, Trunnell and Watson,
//! "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, sec. 4.
//!
//! A segment is requested as soon as the previous one has arrived and the buffer has space for it. Playback starts with
//! the first segment, stalls while the buffer is empty, and continues with the next segment. Every segment has exactly
//! the size of its bitrate.

use crate::app::message::{Delivery, Item, Message, Wake};
use thalweg_plan::plan::segment_bytes;
use thalweg_units::{Rate, Span, Time};

/// A video player.
#[derive(Clone, Debug)]
pub struct Video {
    /// Available bitrates, in ascending order.
    bitrates: Vec<Rate>,
    segment: Span,
    buffer: Span,
    /// Index of the bitrate of the latest segment.
    last: usize,
    requested: u64,
    is_waiting: bool,
    /// Time of the next request.
    request_at: Option<Time>,
    /// Time at which the buffer becomes empty; `None` before the first segment.
    empty_at: Option<Time>,
}

impl Video {
    pub(super) fn new(bitrates: Vec<Rate>, segment: Span, buffer: Span) -> Video {
        Video { bitrates, segment, buffer, last: 0, requested: 0, is_waiting: false, request_at: None, empty_at: None }
    }

    pub(super) fn wake(&mut self, now: Time) -> Wake {
        let due = *self.request_at.get_or_insert(now);
        if self.is_waiting || due > now {
            return Wake::default();
        }
        self.last = self.choose(self.empty_at.map_or(Span::ZERO, |empty| empty.since(due)));
        let bitrate = self.bitrates[self.last];
        let item = Item { number: self.requested, bitrate: Some(bitrate) };
        self.requested += 1;
        self.is_waiting = true;
        let size = segment_bytes(bitrate, self.segment);
        Wake { messages: vec![Message { connection: 0, size, due, item }], next: None }
    }

    pub(super) fn delivered(&mut self, now: Time) -> Delivery {
        let stall = self.stall(now);
        let empty = self.empty_at.map_or(now, |empty| empty.max(now)) + self.segment;
        self.empty_at = Some(empty);
        self.is_waiting = false;
        // Maximum buffer level at which a segment still fits.
        let full = self.buffer.saturating_sub(self.segment);
        let request_at = now.max(Time(empty.0.saturating_sub(full.0)));
        self.request_at = Some(request_at);
        Delivery { stall: Some(stall), next: Some(request_at), is_done: false }
    }

    fn stall(&self, now: Time) -> Span {
        self.empty_at.map_or(Span::ZERO, |empty| now.since(empty))
    }

    /// Returns the index of the bitrate of the next segment at a buffer level of `level`.
    fn choose(&self, level: Span) -> usize {
        let top = self.bitrates.len() - 1;
        // For a buffer of 240 s the paper reserves 90 s and selects the highest bitrate from 216 s on. A buffer of few
        // segments never reaches that share when the next segment is requested.
        let reservoir = self.buffer.scale(90, 240);
        let upper = self.buffer.scale(216, 240).min(self.buffer.saturating_sub(self.segment));
        if level <= reservoir {
            return 0;
        }
        if level >= upper {
            return top;
        }
        let (lowest, highest) = (self.bitrates[0].0, self.bitrates[top].0);
        let share = u128::from(highest - lowest) * u128::from(level.0 - reservoir.0);
        let mapped = lowest + (share / u128::from(upper.0 - reservoir.0)) as u64;
        if mapped >= self.bitrates[(self.last + 1).min(top)].0 {
            return self.bitrates.iter().rposition(|rate| rate.0 < mapped).unwrap_or(0);
        }
        if mapped <= self.bitrates[self.last.saturating_sub(1)].0 {
            return self.bitrates.iter().position(|rate| rate.0 > mapped).unwrap_or(top);
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn player() -> Video {
        let bitrates = [1, 2, 4, 8].map(Rate::from_mbps).to_vec();
        Video::new(bitrates, Span::from_secs(4), Span::from_secs(40))
    }

    /// Plays segments over a path with `rate`. Returns the bitrate in Mbit/s and the stall of each segment.
    fn play(video: &mut Video, rate: Rate, segments: usize) -> Vec<(u64, Span)> {
        let mut now = Time::ZERO;
        (0..segments)
            .map(|_| {
                let message = video.wake(now).messages[0];
                now = message.due + Span(message.size.0 * 8 * SECOND / rate.0);
                let delivery = video.delivered(now);
                now = delivery.next.unwrap();
                (message.item.bitrate.unwrap().0 / 1_000_000, delivery.stall.unwrap())
            })
            .collect()
    }

    #[test]
    fn the_bitrate_climbs_to_the_highest_that_the_path_carries_and_nothing_stalls() {
        let played = play(&mut player(), Rate::from_mbps(100), 40);
        assert_eq!(played[0].0, 1, "an empty buffer has the lowest bitrate");
        assert_eq!(played[39].0, 8);
        assert!(played.iter().all(|(_, stall)| *stall == Span::ZERO), "{played:?}");
    }

    #[test]
    fn a_path_below_the_lowest_bitrate_stalls_for_the_missing_time() {
        // 4 s at 1 Mbit/s take 8 s at 0.5 Mbit/s: every segment except the first arrives 4 s after the buffer became
        // empty.
        let played = play(&mut player(), Rate(500_000), 5);
        assert!(played.iter().all(|(bitrate, _)| *bitrate == 1));
        let stalls: Vec<u64> = played.iter().map(|(_, stall)| stall.0 / SECOND).collect();
        assert_eq!(stalls, [0, 4, 4, 4, 4]);
    }

    #[test]
    fn a_full_buffer_waits_until_a_segment_has_space() {
        let mut video = player();
        play(&mut video, Rate::from_mbps(1000), 60);
        let (requested, empty) = (video.request_at.unwrap(), video.empty_at.unwrap());
        assert_eq!(empty.since(requested), Span::from_secs(36));
        assert_eq!(video.wake(Time(requested.0 - 1)), Wake::default(), "too early");
    }

    #[test]
    fn the_bitrate_stays_while_the_map_is_between_its_neighbours() {
        let mut video = player();
        video.last = 1;
        // The bitrate rises linearly from 1 Mbit/s at 15 s to 8 Mbit/s at 36 s: 3 Mbit/s at 21 s, 4.33 at 25 s, 1 at 15
        // s.
        assert_eq!(video.choose(Span::from_secs(21)), 1);
        assert_eq!(video.choose(Span::from_secs(25)), 2);
        assert_eq!(video.choose(Span::from_secs(15)), 0);
    }
}
