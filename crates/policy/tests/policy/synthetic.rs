//! Outcomes of synthetic paths.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use thalweg_policy::{ArmId, Arms, Bayes, Class, Direction, Group, Objective, Outcome, Policy, Prefix};
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

pub const CUBIC: ArmId = ArmId(0);
pub const BBR: ArmId = ArmId(1);

pub fn arms() -> Arms {
    Arms::named(&["cubic", "bbr"], "cubic").unwrap()
}

pub fn bayes() -> Bayes {
    Bayes::new(arms(), Objective::default(), Default::default())
}

pub fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

pub fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

/// Returns the outcome of a transfer that took `ms`.
pub fn outcome(prefix: Prefix, arm: ArmId, ms: f64) -> Outcome {
    let span = Span((ms * 1e6) as u64);
    Outcome {
        prefix,
        arm,
        group: Group::Treated,
        direction: Direction::In,
        acked: Bytes(300_000),
        completion: Some(span),
        busy: span,
        is_app_limited: false,
        is_cpu_limited: false,
        segments: Packets(208),
        retransmits: Packets(0),
        rtt_min: Some(Span::from_millis(20)),
        rtt_max: Some(Span::from_millis(40)),
        delivery_rate: Some(Rate::of(Bytes(300_000), span)),
    }
}

/// Random completion times with a long tail: lognormal, with a timeout for one in twenty.
pub struct Luck(Xoshiro256PlusPlus);

impl Luck {
    pub fn new(seed: u64) -> Luck {
        Luck(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn ms(&mut self, median: f64) -> f64 {
        // The sum of twelve uniform numbers is nearly normal, with variance 1.
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        let timeout = if self.unit() < 0.05 { 300.0 } else { 0.0 };
        median * (0.3 * normal).exp() + timeout
    }
}

/// Simulates `n` connections to a path with these median completion times of CUBIC and BBR. Returns BBR's share.
pub fn run(policy: &mut dyn Policy, prefix: Prefix, medians_ms: [f64; 2], n: u64, luck: &mut Luck) -> f64 {
    let mut chosen = 0;
    for number in 0..n {
        let now = at(1_700_000_000 + number);
        let arm = policy.weights(prefix, Class::default(), now).draw(luck.unit());
        chosen += u64::from(arm == BBR);
        policy.observe(&outcome(prefix, arm, luck.ms(medians_ms[arm.index()])), now);
    }
    chosen as f64 / n as f64
}
