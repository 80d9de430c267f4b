//! Shared code of the tests: a plain configuration, and a driver that replaces the simulator.
#![allow(dead_code, reason = "every test file uses a part of it")]

use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
use thalweg_link::{Link, LinkError, Sent};
use thalweg_plan::plan;
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

/// Returns a link without rate limit, loss or delay, and with an unlimited buffer.
pub fn plain() -> plan::Link {
    plan::Link {
        capacity: plan::Capacity::Unlimited,
        buffer: plan::Buffer::Packets { packets: Packets::MAX },
        queue: plan::Queue::Fifo {},
        loss: plan::Loss::Bernoulli { ratio: Probability::NEVER },
        duplicate: Probability::NEVER,
        delay_ns: Span::ZERO,
        jitter_ns: Span::ZERO,
        allow_reordering: false,
        reorder: Probability::NEVER,
        reorder_delay_ns: Span::ZERO,
        policer: None,
        aggregation: None,
        ack_thinning: None,
        offloads: false,
        profile: None,
    }
}

pub fn steps(steps: &[(u64, u64)]) -> plan::Capacity {
    let step = |&(at_ns, rate_bps): &(u64, u64)| plan::Step { at_ns: Time(at_ns), rate_bps: Rate(rate_bps) };
    plan::Capacity::Steps { steps: steps.iter().map(step).collect() }
}

pub fn rate(rate_bps: u64) -> plan::Capacity {
    steps(&[(0, rate_bps)])
}

pub fn trace() -> plan::Capacity {
    plan::Capacity::Trace { trace: "test".to_owned() }
}

pub fn traces(trace_ms: Option<&[u64]>) -> plan::Traces {
    let opportunities = trace_ms.map(|times| ("test".to_owned(), times.to_vec())).into_iter().collect();
    plan::Traces { opportunities, ..plan::Traces::default() }
}

pub fn link(config: &plan::Link, trace_ms: Option<&[u64]>) -> Result<Link<u64>, LinkError> {
    Link::new(config, &traces(trace_ms), 1)
}

pub fn probability(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

pub fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

pub const fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub at_ns: u64,
    pub size: u64,
    pub extra_ns: u64,
}

pub fn full_sized(at_ns: impl IntoIterator<Item = u64>) -> Vec<Offer> {
    at_ns.into_iter().map(|at_ns| Offer { at_ns, size: 1500, extra_ns: 0 }).collect()
}

#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub sent: Vec<Sent>,
    /// Time in nanoseconds, and number, of each packet that arrived.
    pub arrivals: Vec<(u64, u64)>,
}

impl Outcome {
    pub fn arrival_times(&self) -> Vec<u64> {
        self.arrivals.iter().map(|(at_ns, _)| *at_ns).collect()
    }

    pub fn order(&self) -> Vec<u64> {
        self.arrivals.iter().map(|(_, number)| *number).collect()
    }

    pub fn count(&self, what: Sent) -> usize {
        self.sent.iter().filter(|sent| **sent == what).count()
    }
}

pub fn run_until(link: &mut Link<u64>, until: Time, arrivals: &mut Vec<(u64, u64)>) {
    while let Some(wake) = link.next_wake().filter(|wake| *wake <= until) {
        while let Some(number) = link.poll(wake) {
            arrivals.push((wake.0, number));
        }
    }
}

pub fn carry(config: &plan::Link, trace_ms: Option<&[u64]>, seed: u64, offers: &[Offer]) -> Outcome {
    let mut link = link(config, trace_ms).expect("a configuration that can be");
    let mut rng = rng(seed);
    let mut outcome = Outcome { sent: Vec::new(), arrivals: Vec::new() };
    for (number, offer) in offers.iter().enumerate() {
        run_until(&mut link, Time(offer.at_ns), &mut outcome.arrivals);
        let (size, extra) = (Bytes(offer.size), Span(offer.extra_ns));
        outcome.sent.push(link.send(Time(offer.at_ns), number as u64, size, extra, &mut rng));
    }
    run_until(&mut link, Time::MAX, &mut outcome.arrivals);
    outcome
}
