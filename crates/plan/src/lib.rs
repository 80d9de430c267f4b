//! What is tried: the scenario as people write it, and the plan as engines get it.
//!
//! Both are declared here and nowhere else; the JSON Schema, the Python models and the reference pages are generated
//! from these types, and their doc comments are the texts that users read.
//!
//! - [`scenario`]: the TOML file. Quantities are texts with units, much is optional, a sweep stands for many points.
//! - [`plan`]: the resolved experiments. Quantities are integers whose unit is in the key, nothing is optional that has
//!   a default, every experiment has its own seed.
//!
//! [`labels`] are what the rows of tables take from an experiment.
//!
//! Going from the first to the second (defaults, units, sweeps, seeds, cross-checks) happens once, in the Python
//! package.

pub mod labels;
pub mod plan;
pub mod scenario;
