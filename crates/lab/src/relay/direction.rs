//! One direction of the path: the outboxes of the sending hosts, then the link.
//!
//! Events are processed in the order of their times, not of the calls: a late relay offers packets at the times at
//! which the kernel received them.

use super::capture::{Captured, Recorder, fate};
use super::packet::Packet;
use crate::protocol::QueueReport;
use thalweg_link::Link;
use thalweg_trace::QueueCounters;
use thalweg_traffic::{Outbox, Stream};
use thalweg_units::{Span, Time};

#[derive(Debug)]
pub(super) struct Direction {
    pub is_forward: bool,
    pub link: Link<Packet>,
    pub stream: Stream,
    /// Outboxes of the hosts that send in this direction.
    pub outboxes: Vec<Outbox<Packet>>,
    /// Index of the outbox, by the sender's port from or to which a packet goes.
    pub outbox_of: Vec<usize>,
    /// Additional delay of flows, by the sender's port.
    pub extra_of: Vec<Span>,
    pub samples: Samples,
    pub latest: Time,
    pub offered: u64,
}

#[derive(Debug)]
pub(super) struct Samples {
    interval: Span,
    next: Option<Time>,
    taken: Vec<(Time, QueueCounters)>,
}

impl Samples {
    /// Returns samples at this interval, the first at time zero; zero disables samples before [`Direction::finish`].
    pub fn every(interval: Span) -> Samples {
        Samples { interval, next: (interval > Span::ZERO).then_some(Time::ZERO), taken: Vec::new() }
    }
}

impl Direction {
    /// Accepts a packet that a host sends. A time before that of the latest call counts as the time of that call.
    pub fn offer(&mut self, now: Time, packet: Packet, recorder: &mut Option<Recorder>) {
        let now = self.catch_up(now, recorder);
        if let Some(packet) = self.outboxes[self.outbox_of[packet.port]].pass(now, packet) {
            self.enter(now, packet, recorder);
        }
    }

    /// Takes the samples and passes the packets from the outboxes to the link that are due by `now`. Returns `now`, or
    /// the time of the latest call if that is later.
    pub fn catch_up(&mut self, now: Time, recorder: &mut Option<Recorder>) -> Time {
        let now = now.max(self.latest);
        loop {
            let departures = self.outboxes.iter().enumerate();
            let departure = departures.filter_map(|(index, outbox)| Some((outbox.next_wake()?, index))).min();
            let sample = self.samples.next.filter(|at| *at <= now);
            match departure.filter(|(at, _)| *at <= now) {
                Some((at, index)) if sample.is_none_or(|sample| at <= sample) => {
                    let packet = self.outboxes[index].poll(at).expect("it is due");
                    self.enter(at, packet, recorder);
                }
                _ => match sample {
                    Some(at) => {
                        self.sample(at);
                        self.samples.next = Some(at + self.samples.interval);
                    }
                    None => break,
                },
            }
        }
        self.latest = now;
        now
    }

    /// Returns the next packet that has arrived, and its arrival time.
    #[inline]
    pub fn poll(&mut self) -> Option<(Time, Packet)> {
        self.link.poll_due(self.latest)
    }

    /// Returns the time of the next event of an outbox or of the link; samples do not count.
    pub fn next_wake(&self) -> Option<Time> {
        self.outboxes.iter().filter_map(Outbox::next_wake).chain(self.link.next_wake()).min()
    }

    /// Takes the last sample, and returns the samples as rows.
    pub fn finish(mut self, now: Time, recorder: &mut Option<Recorder>) -> Vec<QueueReport> {
        let now = self.catch_up(now, recorder);
        if self.samples.taken.last().is_none_or(|(at, ..)| *at < now) {
            self.sample(now);
        }
        let is_forward = self.is_forward;
        let row = |&(at, counters): &(Time, QueueCounters)| QueueReport { is_forward, t_us: at.as_micros(), counters };
        self.samples.taken.iter().map(row).collect()
    }

    fn sample(&mut self, at: Time) {
        self.samples.taken.push((at, self.link.queue_counters(at)));
    }

    fn enter(&mut self, now: Time, packet: Packet, recorder: &mut Option<Recorder>) {
        let (size, extra) = (packet.size(), self.extra_of[packet.port]);
        let number = self.offered;
        self.offered += 1;
        let Some(recorder) = recorder else {
            self.link.send(now, packet, size, extra, &mut self.stream);
            return;
        };
        let copy = packet.clone();
        let sent = self.link.send(now, packet, size, extra, &mut self.stream);
        let backlog_bytes = self.link.stats(now).backlog_bytes;
        let is_forward = self.is_forward;
        let captured = Captured { is_forward, t: now, number, fate: fate(sent), size_bytes: size, backlog_bytes };
        recorder.record(captured, copy.ip());
    }
}
