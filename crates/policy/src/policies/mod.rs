//! The policies.

mod ab;
mod bayes;
mod bpftune;
mod greedy;
mod ledger;
mod static_weights;
mod threshold_rules;
mod ucb;

pub use ab::{Ab, AbUnit};
pub use bayes::{Bayes, BayesSettings};
pub use bpftune::{Bpftune, BpftuneKey, BpftuneSettings};
pub use greedy::{Greedy, GreedySettings};
pub use static_weights::Static;
pub use threshold_rules::{Attributes, Rules, RulesError};
pub use ucb::{Ucb, UcbSettings};
