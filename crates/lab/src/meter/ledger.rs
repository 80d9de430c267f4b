//! Counts the packets that entered and left the path, and their delays, per flow.

use super::packet::{FlowKey, ParsedPacket, Protocol};
use super::stream::Stream;
use std::collections::{HashMap, VecDeque};
use thalweg_trace::Histogram;
use thalweg_units::{Span, Time};

/// A packet that has not left the path after this time counts as lost.
const MAX_ON_PATH: Span = Span::from_secs(10);

/// Counters of one flow in one direction. Times are relative to the start of the meter's clock.
#[derive(Clone, Debug)]
pub struct FlowCount {
    /// Key of the flow.
    pub key: FlowKey,
    /// Time of its first packet.
    pub first: Time,
    /// Time at which the last packet with payload left the path; `None` if there was no such packet.
    pub last_delivery: Option<Time>,
    /// Packets that entered the path.
    pub entered_packets: u64,
    /// Packets with payload that entered the path.
    pub data_packets: u64,
    /// TCP segments that contain a byte that had entered before; `None` for UDP.
    pub retransmits: Option<u64>,
    /// Packets that left the path.
    pub delivered_packets: u64,
    /// Payload bytes that left the path; for TCP, each byte once.
    pub delivered_bytes: u64,
    /// Bytes of the IP packets that left the path.
    pub delivered_ip_bytes: u64,
    /// Packets that entered the path and did not leave it, although later packets of the flow did, or 10 s have passed.
    pub lost_packets: u64,
    /// Largest payload of a packet.
    pub max_payload_bytes: u64,
    /// One-way delays on the path.
    pub delays: Histogram,
}

/// State of a flow at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSample {
    /// Key of the flow.
    pub key: FlowKey,
    /// Time of the sample.
    pub at: Time,
    /// Payload bytes that left the path since the start; for TCP, each byte once.
    pub delivered_bytes: u64,
    /// Packets with payload that entered the path since the start.
    pub data_packets: u64,
    /// Retransmitted segments since the start; `None` for UDP.
    pub retransmits: Option<u64>,
    /// Payload bits per second that were delivered since the previous sample.
    pub delivery_rate_bps: u64,
    /// Mean one-way delay of the packets that left the path since the previous sample; `None` without packets.
    pub delay_us: Option<f64>,
    /// Number of these packets.
    pub delayed_packets: u64,
}

#[derive(Debug)]
struct Flow {
    count: FlowCount,
    entered: Stream,
    delivered: Stream,
    /// One more than the highest number of a packet that has left the path.
    delivered_before: u64,
    /// Delivered bytes at the last sample, and the sum and number of delays since then.
    sampled_bytes: u64,
    delay_sum_ns: u64,
    delay_count: u64,
}

/// A packet on the path.
#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: usize,
    /// Number of the packet within its flow.
    number: u64,
    packets: u64,
    at: Time,
}

/// Counters of the flows, and the packets on the path.
#[derive(Debug)]
pub(super) struct Ledger {
    flows: Vec<Flow>,
    index: HashMap<FlowKey, usize>,
    on_path: HashMap<u64, Entry>,
    /// Further packets with the same identity as one on the path, in order of entry.
    alike: HashMap<u64, VecDeque<Entry>>,
    interval: Span,
    next_sample: Time,
    samples: Vec<FlowSample>,
    next_sweep: Time,
}

impl Ledger {
    /// Creates an empty ledger; an interval of zero disables samples.
    pub fn new(interval: Span) -> Ledger {
        Ledger {
            flows: Vec::new(),
            index: HashMap::new(),
            on_path: HashMap::new(),
            alike: HashMap::new(),
            interval,
            next_sample: Time::ZERO + interval,
            samples: Vec::new(),
            next_sweep: Time::ZERO + MAX_ON_PATH,
        }
    }

    /// Records a packet that enters the path.
    pub fn enter(&mut self, at: Time, segment: &ParsedPacket) {
        self.advance(at);
        let index = self.flow(at, segment.key);
        let flow = &mut self.flows[index];
        let count = &mut flow.count;
        let number = count.entered_packets;
        count.entered_packets += segment.packets;
        count.max_payload_bytes = count.max_payload_bytes.max(segment.payload_bytes.div_ceil(segment.packets));
        if segment.key.protocol == Protocol::Tcp && segment.is_syn_or_fin && segment.payload_bytes == 0 {
            flow.entered.start(segment.sequence);
        }
        if segment.payload_bytes > 0 {
            count.data_packets += segment.packets;
            if let Some(retransmits) = &mut count.retransmits {
                let new = flow.entered.pass(segment.sequence, segment.payload_bytes);
                *retransmits += if new < segment.payload_bytes { segment.packets } else { 0 };
            }
        }
        let entry = Entry { flow: index, number, packets: segment.packets, at };
        if let Some(earlier) = self.on_path.get(&segment.identity) {
            if earlier.at + MAX_ON_PATH > at {
                self.alike.entry(segment.identity).or_default().push_back(entry);
                return;
            }
        }
        if let Some(lost) = self.on_path.insert(segment.identity, entry) {
            self.flows[lost.flow].count.lost_packets += lost.packets;
        }
    }

    /// Records a packet that leaves the path.
    pub fn leave(&mut self, at: Time, segment: &ParsedPacket) {
        self.advance(at);
        let entry = self.take(segment.identity);
        let index = self.flow(at, segment.key);
        let flow = &mut self.flows[index];
        let count = &mut flow.count;
        count.delivered_packets += segment.packets;
        count.delivered_ip_bytes += segment.ip_bytes;
        if segment.key.protocol == Protocol::Tcp && segment.is_syn_or_fin && segment.payload_bytes == 0 {
            flow.delivered.start(segment.sequence);
        }
        if segment.payload_bytes > 0 {
            count.delivered_bytes += match segment.key.protocol {
                Protocol::Tcp => flow.delivered.pass(segment.sequence, segment.payload_bytes),
                Protocol::Udp => segment.payload_bytes,
            };
            count.last_delivery = Some(at);
        }
        if let Some(entry) = entry {
            let delay = at.since(entry.at);
            count.delays.add(delay);
            flow.delay_sum_ns += delay.0;
            flow.delay_count += 1;
            flow.delivered_before = flow.delivered_before.max(entry.number + entry.packets);
        }
    }

    /// Takes the samples that are due by `now`; periodically also removes packets that have been on the path for too
    /// long.
    pub fn advance(&mut self, now: Time) {
        while self.interval > Span::ZERO && self.next_sample <= now {
            let at = self.next_sample;
            self.next_sample = at + self.interval;
            let interval_ns = self.interval.0;
            self.samples.extend(self.flows.iter_mut().map(|flow| flow.sample(at, interval_ns)));
        }
        if now >= self.next_sweep {
            self.next_sweep = now + MAX_ON_PATH;
            self.sweep(now);
        }
    }

    /// Returns the counters of the flows, in order of appearance.
    pub fn counts(&self) -> Vec<FlowCount> {
        let mut counts: Vec<FlowCount> = self.flows.iter().map(|flow| flow.count.clone()).collect();
        for entry in self.on_path.values().chain(self.alike.values().flatten()) {
            if entry.number < self.flows[entry.flow].delivered_before {
                counts[entry.flow].lost_packets += entry.packets;
            }
        }
        counts
    }

    /// Removes and returns the samples taken so far, in order of time.
    pub fn take_samples(&mut self) -> Vec<FlowSample> {
        std::mem::take(&mut self.samples)
    }

    fn flow(&mut self, at: Time, key: FlowKey) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            self.flows.push(Flow::new(key, at));
            self.flows.len() - 1
        })
    }

    /// Removes the packet with this identity that entered first, and returns it.
    fn take(&mut self, identity: u64) -> Option<Entry> {
        let entry = self.on_path.remove(&identity)?;
        if !self.alike.is_empty() {
            if let Some(alike) = self.alike.get_mut(&identity) {
                if let Some(next) = alike.pop_front() {
                    self.on_path.insert(identity, next);
                }
                if alike.is_empty() {
                    self.alike.remove(&identity);
                }
            }
        }
        Some(entry)
    }

    fn sweep(&mut self, now: Time) {
        let flows = &mut self.flows;
        let mut stays = |entry: &Entry| {
            let is_old = entry.at + MAX_ON_PATH <= now;
            if is_old {
                flows[entry.flow].count.lost_packets += entry.packets;
            }
            !is_old
        };
        self.alike.retain(|_, entries| {
            entries.retain(&mut stays);
            !entries.is_empty()
        });
        self.on_path.retain(|_, entry| stays(entry));
        let unled: Vec<u64> =
            self.alike.keys().filter(|identity| !self.on_path.contains_key(identity)).copied().collect();
        for identity in unled {
            let first = self.alike.get_mut(&identity).and_then(VecDeque::pop_front);
            self.on_path.extend(first.map(|entry| (identity, entry)));
            self.alike.retain(|_, entries| !entries.is_empty());
        }
    }
}

impl Flow {
    fn new(key: FlowKey, first: Time) -> Flow {
        let count = FlowCount {
            key,
            first,
            last_delivery: None,
            entered_packets: 0,
            data_packets: 0,
            retransmits: (key.protocol == Protocol::Tcp).then_some(0),
            delivered_packets: 0,
            delivered_bytes: 0,
            delivered_ip_bytes: 0,
            lost_packets: 0,
            max_payload_bytes: 0,
            delays: Histogram::default(),
        };
        let (entered, delivered) = (Stream::default(), Stream::default());
        Flow { count, entered, delivered, delivered_before: 0, sampled_bytes: 0, delay_sum_ns: 0, delay_count: 0 }
    }

    fn sample(&mut self, at: Time, interval_ns: u64) -> FlowSample {
        let bytes = self.count.delivered_bytes - self.sampled_bytes;
        let delay_us = (self.delay_count > 0).then(|| self.delay_sum_ns as f64 / self.delay_count as f64 / 1e3);
        let delayed_packets = self.delay_count;
        (self.sampled_bytes, self.delay_sum_ns, self.delay_count) = (self.count.delivered_bytes, 0, 0);
        FlowSample {
            key: self.count.key,
            at,
            delivered_bytes: self.count.delivered_bytes,
            data_packets: self.count.data_packets,
            retransmits: self.count.retransmits,
            delivery_rate_bps: (u128::from(bytes) * 8 * 1_000_000_000 / u128::from(interval_ns)) as u64,
            delay_us,
            delayed_packets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::packet::{self, tests::segment};

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn packet(sequence: u32, id: u16) -> ParsedPacket {
        packet::read(&segment(sequence, id, &[0; 1000]), 0).unwrap()
    }

    #[test]
    fn an_overtaken_packet_is_lost_and_its_bytes_count_as_retransmitted() {
        let mut ledger = Ledger::new(Span::from_millis(10));
        let packets: Vec<ParsedPacket> = (0..4).map(|number| packet(number * 1000, number as u16)).collect();
        packets.iter().for_each(|packet| ledger.enter(at_ms(0), packet));
        for number in [0, 2] {
            ledger.leave(at_ms(5), &packets[number]);
        }
        let count = ledger.counts().remove(0);
        assert_eq!((count.entered_packets, count.delivered_packets, count.lost_packets), (4, 2, 1));
        assert_eq!((count.delivered_bytes, count.retransmits), (2000, Some(0)));
        let again = packet(1000, 9);
        ledger.enter(at_ms(20), &again);
        ledger.leave(at_ms(27), &again);
        let count = ledger.counts().remove(0);
        assert_eq!((count.delivered_bytes, count.retransmits, count.lost_packets), (3000, Some(1), 2));
        assert_eq!((count.last_delivery, count.delays.min_us()), (Some(at_ms(27)), Some(5000.0)));
        let samples = ledger.take_samples();
        assert_eq!((samples.len(), samples[0].at, samples[0].delivery_rate_bps), (2, at_ms(10), 1_600_000));
        assert_eq!((samples[0].delay_us, samples[1].delay_us), (Some(5000.0), None));
        assert_eq!((samples[0].delayed_packets, samples[1].delayed_packets), (2, 0));
    }

    #[test]
    fn the_bytes_of_a_single_packet_with_fin_are_counted_once() {
        let mut ledger = Ledger::new(Span::ZERO);
        let last = ParsedPacket { is_syn_or_fin: true, ..packet(0, 0) };
        ledger.enter(at_ms(0), &last);
        ledger.leave(at_ms(5), &last);
        let count = ledger.counts().remove(0);
        assert_eq!((count.delivered_bytes, count.retransmits), (1000, Some(0)));
    }

    #[test]
    fn identical_packets_are_matched_in_fifo_order() {
        let mut ledger = Ledger::new(Span::ZERO);
        let same = packet(0, 0);
        ledger.enter(at_ms(0), &same);
        ledger.enter(at_ms(1), &same);
        ledger.leave(at_ms(4), &same);
        ledger.leave(at_ms(5), &same);
        ledger.leave(at_ms(6), &same);
        let count = ledger.counts().remove(0);
        assert_eq!(
            (count.delays.min_us(), count.delays.mean_us()),
            (Some(4000.0), Some(4000.0)),
            "the third is a duplicate"
        );
        assert_eq!((count.delivered_packets, count.lost_packets), (3, 0));
    }

    #[test]
    fn a_packet_that_does_not_leave_within_ten_seconds_is_lost_and_evicted() {
        let mut ledger = Ledger::new(Span::ZERO);
        for _ in 0..2 {
            ledger.enter(at_ms(0), &packet(0, 0));
        }
        ledger.enter(at_ms(9_000), &packet(1000, 1));
        assert_eq!(ledger.counts()[0].lost_packets, 0, "nothing has overtaken them");
        ledger.advance(at_ms(11_000));
        assert_eq!((ledger.counts()[0].lost_packets, ledger.on_path.len(), ledger.alike.len()), (2, 1, 0));
    }
}
