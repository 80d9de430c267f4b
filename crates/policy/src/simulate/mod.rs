//! Simulates policies on a population of paths.
//!
//! **Population** ([`Population`]): kinds of paths with their shares, sizes of transfers, changes of paths, and periods
//! in which a host is short of CPU.
//!
//! **Outcomes** ([`Table`]): results of transfers on such a path with each arm, from the network simulator
//! (tools/policy_outcomes.py). Each connection draws one of the rows.
//!
//! **Play** ([`Simulation::play`]): a world is drawn from a seed. Its connections open in sequence, draw an arm with
//! the policy's weights, and report their outcome when they close.
//!
//! **Score** ([`Score`]): regret is the mean additional reward of the path's best single arm at that moment. It is
//! computed from means over the rows of the table, and not from the row that was drawn, which removes noise.

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

/// The population that is included in this crate.
pub const POPULATION: &str = include_str!("../../data/population.json");

/// The outcomes that are included in this crate.
pub const OUTCOMES: &str = include_str!("../../data/outcomes.json");
