//! Compressed events: many numbers of an event are zero, and many others are small.
//!
//! A bitmap marks the numbers that are not zero. These follow in LEB128: seven bits per byte, and one bit that marks
//! that another byte follows.

use super::record_event::RecordEvent;

/// Each number of an event has a bit of a `u128`.
const _: () = assert!(RecordEvent::NUMBERS <= 128);

/// A compressed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    /// Compresses an event.
    pub fn new(event: &RecordEvent) -> Packed {
        let (mut present, mut at) = (0u128, 0);
        let mut bytes = vec![0; size_of::<u128>()];
        event.visit(&mut |mut number| {
            present |= u128::from(number != 0) << at;
            at += 1;
            while number != 0 {
                let more = if number > 0x7f { 0x80 } else { 0 };
                bytes.push((number & 0x7f) as u8 | more);
                number >>= 7;
            }
        });
        bytes[..size_of::<u128>()].copy_from_slice(&present.to_ne_bytes());
        Packed(bytes.into_boxed_slice())
    }

    /// Decompresses the event.
    pub fn event(&self) -> RecordEvent {
        let (present, bytes) = self.0.split_at(size_of::<u128>());
        let present = u128::from_ne_bytes(present.try_into().expect("16 bytes"));
        let mut bytes = bytes.iter();
        RecordEvent::of((0..RecordEvent::NUMBERS).map(|at| {
            let (mut number, mut shift, mut more) = (0, 0, present >> at & 1 == 1);
            while more {
                let byte = bytes.next().expect("a byte for each that is announced");
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                more = byte & 0x80 != 0;
            }
            number
        }))
    }

    /// Returns the size in bytes.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::record_event::flag;

    #[test]
    fn an_event_survives_packing_and_unpacking() {
        let mut random = 1u64;
        let numbers: Vec<u64> = (0..RecordEvent::NUMBERS as u64)
            .map(|at| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at);
                if at % 3 == 0 { 0 } else { random >> (at % 64) }
            })
            .collect();
        for event in
            [RecordEvent::of(numbers), RecordEvent::of(vec![u64::MAX; RecordEvent::NUMBERS]), RecordEvent::default()]
        {
            assert_eq!(Packed::new(&event).event(), event);
        }
    }

    #[test]
    fn a_packed_sample_of_a_busy_connection_is_small() {
        let event = RecordEvent {
            kind: 2,
            flags: flag::JOINED | flag::BLIND,
            connection: 81_234_567,
            start_us: 1_234_567_890_123,
            end_us: 1_234_999_890_123,
            family: 10,
            local_address: [0x0000_0001_b80d_0120, 0x0100_0000_0000_0000],
            local_port: 443,
            remote_address: [0x0034_1200_b80d_0120, 0x7856_3412_cdab_3412],
            remote_port: 51_234,
            netns: 4_026_531_840,
            cgroup: 123_456,
            state: 1,
            cc: [0x0063_6962_7563, 0],
            sent_bytes: 123_456_789_012,
            acked_bytes: 123_456_000_000,
            retransmitted_bytes: 1_234_567,
            segments: 85_000_000,
            retransmits: 850,
            busy_jiffies: 1_234_567,
            rtt_min_us: 12_345,
            rtt_smoothed_us: 23_456,
            received_bytes: 12_345_678,
            segments_out: 85_100_000,
            segments_in: 42_000_000,
            reordering: 3,
            mss_bytes: 1_448,
            cwnd_packets: 120,
            rate_packets: 100,
            rate_interval_us: 23_456,
            bbr_samples: 5_000,
            ..RecordEvent::default()
        };
        let packed = Packed::new(&event);
        assert!(packed.bytes() <= 140, "{} of {}", packed.bytes(), RecordEvent::BYTES);
        assert_eq!(packed.event(), event);
    }
}
