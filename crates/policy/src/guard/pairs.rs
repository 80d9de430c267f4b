//! Pairs of a held-out and a treated connection to the same destination and of the same class.
//!
//! A held-out connection is paired with the latest unpaired treated one, or waits for the next. If another held-out
//! connection closes first, it replaces the waiting one. If the treatment has no effect, and connections are held out
//! at random, the two connections of a pair are exchangeable: the difference of their rewards is as likely to be `d` as
//! `-d`. The test assumes this, but no variance or distribution of rewards.

use crate::outcome::{Direction, Size};
use serde::{Deserialize, Serialize};

/// Assumed size of differences before any is observed, in units of reward.
const USUAL: f64 = 0.5;

/// Weight of the newest difference in the scale.
const NEWEST: f64 = 0.1;

/// Unpaired connections of a destination, and the usual size of differences.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stratum {
    waiting: Vec<Waiting>,
    scale: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiting {
    size: Size,
    direction: Direction,
    treated: Option<f64>,
    held_out: Option<f64>,
}

impl Stratum {
    /// Adds a reward. If it completes a pair, returns the difference, treated minus held out.
    pub fn take(&mut self, (size, direction): (Size, Direction), is_held_out: bool, reward: f64) -> Option<f64> {
        let position = self.waiting.iter().position(|waiting| (waiting.size, waiting.direction) == (size, direction));
        let number = position.unwrap_or_else(|| {
            self.waiting.push(Waiting { size, direction, treated: None, held_out: None });
            self.waiting.len() - 1
        });
        let waiting = &mut self.waiting[number];
        // One waiting connection per group is kept, a choice that must not depend on the rewards.
        let (own, other) = if is_held_out {
            (&mut waiting.held_out, &mut waiting.treated)
        } else {
            (&mut waiting.treated, &mut waiting.held_out)
        };
        match other.take() {
            Some(partner) => {
                *own = None;
                Some(if is_held_out { partner - reward } else { reward - partner })
            }
            None => {
                *own = Some(reward);
                None
            }
        }
    }

    /// Adds a difference, and returns the scale before it: a scale must not depend on the value that it scales.
    pub fn scale_before(&mut self, distance: f64) -> f64 {
        let before = self.scale.unwrap_or(USUAL);
        self.scale = Some(before + NEWEST * (distance.abs() - before));
        before.max(1e-3)
    }
}
