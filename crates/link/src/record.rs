//! Optional record of each packet's outcome, known when the packet leaves the queue or is dropped.

use thalweg_units::Span;

/// Reason why a packet did not pass the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Lost at random.
    Random,
    /// The policer's bucket had too few tokens.
    Policed,
    /// The queue's limit was reached.
    Full,
    /// The queue discipline chose to drop it while the limit was not reached.
    Early,
}

impl DropCause {
    /// Name in the table `packets`.
    pub fn name(self) -> &'static str {
        match self {
            DropCause::Random => "random",
            DropCause::Policed => "policed",
            DropCause::Full => "full",
            DropCause::Early => "early",
        }
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has left the queue.
    Left {
        /// Time in the queue.
        sojourn: Span,
        /// Whether the queue has set its ECN field to CE.
        is_marked: bool,
    },
    /// It was dropped.
    Dropped(DropCause),
}

/// Fate of a packet, by its number among those that were offered, from 0. A copy has the number of its original.
pub type Outcome = (u64, Fate);
