//! Policies played against a population of paths.
//!
//! **Population** ([`Population`]): kinds of paths with their shares, sizes, and how paths change; a host that is short
//! of CPU for a while. It is a file, data/population.json, which was fixed before any policy was tuned on it.
//!
//! **Outcomes** ([`Table`]): results of transfers on such a path with each arm. The simulator has run them beside other
//! users' traffic (tools/policy_outcomes.py), and each connection draws one of the rows.
//!
//! **Play** ([`Simulation::play`]): a world is drawn from a seed. Its connections open one after the other, get an arm
//! by the policy's weights, and report their outcome when they close. All policies get the same worlds and the same
//! random numbers.
//!
//! **Score** ([`Score`]): regret is the mean additional reward of the path's best single arm at that moment. It is
//! computed from means over the rows of the table, and not from the row that was drawn: luck is left out of it.

mod candidates;
mod contender;
mod play;
mod population;
mod score;
mod table;
mod world;

pub use candidates::UnknownPolicy;
pub use contender::Contender;
pub use play::Simulation;
pub use population::{Kind, Population};
pub use score::{Score, Spread, Summary};
pub use table::{Row, Table};
pub use world::World;

/// The population that comes with this crate.
pub const POPULATION: &str = include_str!("../../data/population.json");

/// The outcomes that come with this crate.
pub const OUTCOMES: &str = include_str!("../../data/outcomes.json");
