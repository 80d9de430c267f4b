//! The input: the scenario as written by the user, and the plan as read by engines.
//!
//! Both are declared only here; the JSON Schema, the Python models and the reference pages are generated from these
//! types, and their doc comments are the texts that users read.
//!
//! - [`scenario`]: the TOML file. Quantities are texts with units, most keys are optional, a sweep describes many
//!   points.
//! - [`plan`]: the resolved experiments. Quantities are integers whose unit is in the key, defaults are filled in,
//!   every experiment has its own seed.
//!
//! [`labels`] are the values that the rows of tables take from an experiment.
//!
//! The Python package converts a scenario to a plan (defaults, units, sweeps, seeds, cross-checks).

pub mod labels;
pub mod plan;
pub mod scenario;
