//! Optional record of each packet's outcome, known when the packet leaves the queue or is dropped. Acknowledgements
//! that ACK thinning drops have no outcome.

use thalweg_units::Span;

/// Reason why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Lost at random.
    Random,
    /// The policer's bucket had too few tokens.
    Policed,
    /// The queue's limit was reached.
    Full,
    /// The queue discipline dropped the packet below the limit.
    Early,
}

impl DropCause {
    /// Returns the name in the table `packets`.
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
    /// The packet left the queue.
    Left {
        /// Time in the queue.
        sojourn: Span,
        /// Whether the queue has set its ECN field to CE.
        is_marked: bool,
    },
    /// The packet was dropped.
    Dropped(DropCause),
}

/// Number of a packet among the offered packets, from 0, and its fate. A copy has the number of its original.
pub type Outcome = (u64, Fate);
