//! Pairs of a connection that was held out and one that was not, to the same destination and of the same class.
//!
//! Each held-out connection is paired with the latest treated one without a partner, or waits for the next. If the
//! treatment changes nothing, and the draw is the only cause of who is held out, either one of a pair could have been
//! the other: the difference of their rewards is as likely to be `d` as `-d`. That is the only assumption of the test.
//! It needs no variance and no distribution of rewards, and a drifting level affects both sides.

use crate::outcome::{Direction, Size};
use serde::{Deserialize, Serialize};

/// Assumed size of differences until some were observed, in units of reward.
const USUAL: f64 = 0.5;

/// Weight of the newest difference in the scale.
const NEWEST: f64 = 0.1;

/// Connections that wait for a partner, and how large differences usually are.
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
    /// Takes a reward; returns the difference, treated minus held out, if it completes a pair.
    pub fn take(&mut self, (size, direction): (Size, Direction), is_held_out: bool, reward: f64) -> Option<f64> {
        let position = self.waiting.iter().position(|waiting| (waiting.size, waiting.direction) == (size, direction));
        let number = position.unwrap_or_else(|| {
            self.waiting.push(Waiting { size, direction, treated: None, held_out: None });
            self.waiting.len() - 1
        });
        let waiting = &mut self.waiting[number];
        // Several of a group that wait leave one: the choice must not depend on their rewards.
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

    /// Returns the scale of differences before `distance`, and then adds it: the scale of a test must not depend on
    /// the value that it weighs.
    pub fn scale_before(&mut self, distance: f64) -> f64 {
        let before = self.scale.unwrap_or(USUAL);
        self.scale = Some(before + NEWEST * (distance.abs() - before));
        before.max(1e-3)
    }
}
