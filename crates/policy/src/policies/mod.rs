//! The policies: the default (`bayes`), those that it is compared with, and those that an operator may want for another reason.

mod ab;
mod bayes;
mod bpftune;
mod greedy;
mod ledger;
mod rules;
mod static_weights;
mod ucb;

pub use ab::{Ab, AbUnit};
pub use bayes::{Bayes, BayesSettings};
pub use bpftune::{Bpftune, BpftuneKey, BpftuneSettings};
pub use greedy::{Greedy, GreedySettings};
pub use rules::{Known, Rules, RulesError};
pub use static_weights::Static;
pub use ucb::{Ucb, UcbSettings};
