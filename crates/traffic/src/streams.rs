//! Seeded randomness: a stream for each purpose, so that draws from one do not change the others.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use thalweg_plan::plan::Experiment;
use thalweg_units::Span;

/// A stream of random numbers. A change of the algorithm requires a new result version.
pub type Stream = Xoshiro256PlusPlus;

/// The streams of an experiment. A change of the order in which they are created requires a new result version.
#[derive(Clone, Debug)]
pub struct Randomness {
    /// Stream of the link from sender to receiver.
    pub forward: Stream,
    /// Stream of the link from receiver to sender.
    pub reverse: Stream,
    /// Stream for the delays of packets that leave the receiver.
    pub receiver: Stream,
    /// Streams for the delays of packets that leave the senders: one per host of the plan, `receiver` included, in the
    /// order of their names.
    pub hosts: Vec<Stream>,
    /// Streams of the copies of flows, in the order of the plan.
    pub series: Vec<Stream>,
    /// Streams of the background sources, in the order of the plan.
    pub sources: Vec<Stream>,
    /// Streams of the senders' CPUs: one per host of the plan, as in `hosts`.
    pub cpus: Vec<Stream>,
    /// Seeds of the queue disciplines of the forward and the reverse link.
    pub queues: [u64; 2],
}

impl Randomness {
    /// Creates the streams of an experiment.
    pub fn new(experiment: &Experiment) -> Randomness {
        let mut streams = Streams::new(experiment.seed);
        let copies: u64 = experiment.flows.iter().map(|flow| u64::from(flow.count)).sum();
        Randomness {
            forward: streams.take(),
            reverse: streams.take(),
            receiver: streams.take(),
            hosts: experiment.hosts.iter().map(|_| streams.take()).collect(),
            series: (0..copies).map(|_| streams.take()).collect(),
            sources: experiment.background.iter().map(|_| streams.take()).collect(),
            cpus: experiment.hosts.iter().map(|_| streams.take()).collect(),
            queues: [streams.take().next_u64(), streams.take().next_u64()],
        }
    }
}

/// Creates streams that do not overlap for 2^128 numbers each.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    next: Stream,
}

impl Streams {
    pub(crate) fn new(seed: u64) -> Streams {
        Streams { next: Stream::seed_from_u64(seed) }
    }

    pub(crate) fn take(&mut self) -> Stream {
        let stream = self.next.clone();
        self.next.jump();
        stream
    }
}

/// Returns a random span from zero up to, but not including, `limit`. Draws no number if `limit` is zero.
pub fn up_to(limit: Span, stream: &mut Stream) -> Span {
    if limit == Span::ZERO {
        return Span::ZERO;
    }
    Span(((u128::from(stream.next_u64()) * u128::from(limit.0)) >> 64) as u64)
}

/// Returns a random index below `len`. Draws no number if `len` is below 2.
pub(crate) fn index(len: usize, stream: &mut Stream) -> usize {
    if len < 2 {
        return 0;
    }
    ((u128::from(stream.next_u64()) * len as u128) >> 64) as usize
}

/// Returns an exponentially distributed span. The logarithm is that of `libm`, which is bit-identical on every
/// platform.
pub(crate) fn exponential(mean: Span, stream: &mut Stream) -> Span {
    // 53 bits, from 2^-53 to 1, so that the logarithm is finite.
    let unit = ((stream.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    Span((-libm::log(unit) * mean.0 as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_gaps_have_their_mean() {
        let mut stream = Streams::new(1).take();
        let n = 100_000;
        let sum: u64 = (0..n).map(|_| exponential(Span::from_millis(10), &mut stream).0).sum();
        // Four standard errors of the mean: 4 x 10 ms / sqrt(100 000) = 0.13 ms.
        assert!((sum as f64 / f64::from(n) - 10e6).abs() < 0.13e6, "{}", sum / u64::from(n as u32));
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let mut streams = Streams::new(7);
        let first = [streams.take().next_u64(), streams.take().next_u64()];
        assert_ne!(first[0], first[1]);
        let mut again = Streams::new(7);
        assert_eq!(first, [again.take().next_u64(), again.take().next_u64()]);
        assert_ne!(first[0], Streams::new(8).take().next_u64());
    }
}
