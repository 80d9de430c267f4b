//! Random loss.
//!
//! Bernoulli: each packet independently. Gilbert-Elliott (E. N. Gilbert, "Capacity of a burst-noise channel", Bell
//! System Technical Journal 39, 1960; E. O. Elliott, "Estimates of error rates for codes on burst-noise channels",
//! ibid. 42, 1963):
//!
//! ```text
//!               p
//!        ┌─────────────►┐
//!      good            bad          loss_good, loss_bad: probability of loss in each
//!        └◄─────────────┘
//!               r
//! ```
//!
//! The link starts in the good state. Before each packet the state changes with probability `p` or `r`; then the packet
//! is lost with the probability of the new state. In the long run the link is in the bad state for `p / (p + r)` of the
//! packets, and a bad period lasts for `1 / r` packets on average. netem's `gemodel` uses the probability of the
//! previous state, which shifts the states by one packet and does not change these figures.

use crate::error::{LinkError, probability};
use rand_core::Rng;
use thalweg_plan::plan::Loss;
use thalweg_units::Probability;

/// Decides which packets are lost.
#[derive(Debug)]
pub(crate) enum LossProcess {
    /// No packet is lost, and no random number is drawn.
    Off,
    Bernoulli(Probability),
    GilbertElliott {
        p: Probability,
        r: Probability,
        loss_bad: Probability,
        loss_good: Probability,
        is_bad: bool,
    },
}

impl LossProcess {
    /// Creates the process. `is_variable`: its ratio may be changed later.
    pub fn new(loss: &Loss, is_variable: bool) -> Result<LossProcess, LinkError> {
        match *loss {
            Loss::Bernoulli { ratio } => {
                let ratio = probability("loss.ratio", ratio)?;
                Ok(if ratio == Probability::NEVER && !is_variable {
                    LossProcess::Off
                } else {
                    LossProcess::Bernoulli(ratio)
                })
            }
            Loss::GilbertElliott { p, r, loss_bad, loss_good } => {
                let p = probability("loss.p", p)?;
                let r = probability("loss.r", r)?;
                let loss_bad = probability("loss.loss_bad", loss_bad)?;
                let loss_good = probability("loss.loss_good", loss_good)?;
                let loses_when_bad = p > Probability::NEVER && loss_bad > Probability::NEVER;
                if loss_good == Probability::NEVER && !loses_when_bad {
                    return Ok(LossProcess::Off);
                }
                Ok(LossProcess::GilbertElliott { p, r, loss_bad, loss_good, is_bad: false })
            }
        }
    }

    /// Sets the ratio of independent losses; Gilbert-Elliott parameters do not change.
    pub fn set_ratio(&mut self, ratio: Probability) {
        if let LossProcess::Bernoulli(current) = self {
            *current = ratio;
        }
    }

    /// Whether the next packet is lost.
    pub fn takes<R: Rng + ?Sized>(&mut self, rng: &mut R) -> bool {
        match self {
            LossProcess::Off => false,
            LossProcess::Bernoulli(ratio) => ratio.sample(rng.next_u64()),
            LossProcess::GilbertElliott { p, r, loss_bad, loss_good, is_bad } => {
                let change = if *is_bad { *r } else { *p };
                *is_bad ^= change.sample(rng.next_u64());
                let loss = if *is_bad { *loss_bad } else { *loss_good };
                loss.sample(rng.next_u64())
            }
        }
    }
}
