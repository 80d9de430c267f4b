//! The file with the population.

use serde::{Deserialize, Serialize};
use thalweg_units::Bytes;

/// Version of the file.
const FORMAT: u32 = 1;

/// Which paths there are, what they carry, and how they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// Version.
    pub format: u32,
    /// Kinds of paths.
    pub kinds: Vec<Kind>,
    /// Names of the arms.
    pub arms: Vec<String>,
    /// The host's default algorithm.
    pub default_arm: String,
    /// Sizes of transfers.
    pub sizes: Vec<SizeShare>,
    /// When hosts are short of CPU.
    pub cpu: Cpu,
    /// How many there are of everything.
    pub world: Shape,
}

/// A kind of paths. What the path is like, the simulator alone has to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Its name in the table of outcomes.
    pub name: String,
    /// Of all paths.
    pub share: f64,
}

/// A size of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeShare {
    /// The size.
    pub bytes: Bytes,
    /// Of all transfers.
    pub share: f64,
}

/// When hosts are short of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Share of hosts that are short of CPU for a while.
    pub hosts_with_a_busy_time: f64,
    /// From when, as a share of the time played.
    pub busy_from: f64,
    /// Until when.
    pub busy_to: f64,
}

/// How many there are of everything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Networks: a /16 each.
    pub networks: u8,
    /// Destinations within each: a /24 each.
    pub prefixes_per_network: u8,
    /// Share of destinations that have a path of their network's kind; the others have any.
    pub like_the_network: f64,
    /// Share of destinations whose path becomes one of another kind.
    pub changing: f64,
    /// That happens from then on, as a share of the time played.
    pub changes_from: f64,
    /// Until then.
    pub changes_to: f64,
    /// Connections to all destinations.
    pub connections: u32,
    /// The n-th destination gets connections in proportion to 1 / n^this.
    pub popularity_exponent: f64,
    /// Share of connections that the application limits.
    pub app_limited: f64,
    /// Least part of the path's rate that it then uses.
    pub app_limited_least: f64,
    /// Largest part.
    pub app_limited_most: f64,
    /// Time played, in seconds.
    pub span_s: u64,
}

impl Population {
    /// Parses the file.
    ///
    /// # Errors
    /// If the text is not a population, or of another version; the error is a sentence.
    pub fn parse(text: &str) -> Result<Population, String> {
        let population: Population = serde_json::from_str(text).map_err(|error| format!("population: {error}"))?;
        if population.format != FORMAT {
            return Err(format!("population: format {}, expected {FORMAT}", population.format));
        }
        Ok(population)
    }
}
