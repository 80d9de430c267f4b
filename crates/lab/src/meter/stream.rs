//! Tracks which bytes of a TCP stream have passed a point.

/// The bytes that have passed, as the highest one and the gaps below it. Positions start at 2^32, so that positions
/// before the first byte are positive.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// Position and sequence number after the highest byte.
    end: Option<(u64, u32)>,
    /// Ranges below the end that have not passed, in order.
    holes: Vec<(u64, u64)>,
}

const FIRST: u64 = 1 << 32;

impl Stream {
    /// Starts the stream after a SYN or FIN without payload with this sequence number, if it has not started.
    pub fn start(&mut self, syn: u32) {
        self.end.get_or_insert((FIRST, syn.wrapping_add(1)));
    }

    /// Records a segment with payload; returns the number of its bytes that had not passed before. Bytes before the
    /// start of the stream do not count.
    pub fn pass(&mut self, sequence: u32, bytes: u64) -> u64 {
        let (end, end_sequence) = *self.end.get_or_insert((FIRST, sequence));
        let from = end.saturating_add_signed(i64::from(sequence.wrapping_sub(end_sequence) as i32));
        let to = from + bytes;
        let mut new = self.fill(from, to);
        if to > end {
            if from > end {
                self.holes.push((end, from));
            }
            new += to - from.max(end);
            self.end = Some((to, sequence.wrapping_add(bytes as u32)));
        }
        new
    }

    /// Removes a range from the gaps; returns the number of its bytes that were in a gap.
    fn fill(&mut self, from: u64, to: u64) -> u64 {
        let first = self.holes.partition_point(|hole| hole.1 <= from);
        let count = self.holes[first..].iter().take_while(|hole| hole.0 < to).count();
        let mut remaining = Vec::new();
        let mut filled = 0;
        for &(low, high) in &self.holes[first..first + count] {
            let (left, right) = (low.max(from), high.min(to));
            filled += right - left;
            remaining.extend([(low, left), (right, high)].into_iter().filter(|(low, high)| low < high));
        }
        self.holes.splice(first..first + count, remaining);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_counts_once_in_any_order_of_arrival() {
        let mut stream = Stream::default();
        stream.start(u32::MAX - 99);
        // Sequence numbers wrap after 99 bytes.
        let at = |position: u32| (u32::MAX - 98).wrapping_add(position);
        assert_eq!(stream.pass(at(0), 100), 100);
        assert_eq!(stream.pass(at(300), 100), 100, "200 bytes are missing");
        assert_eq!(stream.pass(at(0), 100), 0, "again");
        assert_eq!(stream.pass(at(150), 100), 100, "from the middle of the hole");
        assert_eq!(stream.pass(at(100), 250), 100, "what was left of it at both sides");
        assert_eq!(stream.pass(at(350), 100), 50);
        assert!(stream.holes.is_empty());
    }

    #[test]
    fn a_stream_without_an_observed_start_begins_at_the_first_segment() {
        let mut stream = Stream::default();
        assert_eq!(stream.pass(1000, 10), 10);
        assert_eq!(stream.pass(990, 10), 0, "from before");
        assert_eq!(stream.pass(1010, 10), 10);
    }
}
