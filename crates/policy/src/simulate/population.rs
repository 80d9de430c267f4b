//! The population file.

use serde::{Deserialize, Serialize};
use thalweg_units::Bytes;

/// Supported version of the file.
const FORMAT: u32 = 1;

/// The paths, their traffic, and their changes over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// Version of the file.
    pub format: u32,
    /// Kinds of paths.
    pub kinds: Vec<Kind>,
    /// Names of the arms.
    pub arms: Vec<String>,
    /// Default algorithm of the host.
    pub default_arm: String,
    /// Sizes of transfers.
    pub sizes: Vec<SizeShare>,
    /// Periods in which hosts are short of CPU.
    pub cpu: Cpu,
    /// Parameters of a world: its networks, destinations and connections.
    pub world: Shape,
}

/// A kind of path. Other properties in the file are not used here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Name in the table of outcomes.
    pub name: String,
    /// Share of all paths.
    pub share: f64,
}

/// A size of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeShare {
    /// The size.
    pub bytes: Bytes,
    /// Share of all transfers.
    pub share: f64,
}

/// Periods in which hosts are short of CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Share of hosts that are short of CPU for some time.
    pub hosts_with_a_busy_time: f64,
    /// Start, as a share of the simulated time.
    pub busy_from: f64,
    /// End, as a share of the simulated time.
    pub busy_to: f64,
}

/// Parameters of a world: its networks, destinations and connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of networks, each a /16.
    pub networks: u8,
    /// Number of destinations within each network, each a /24.
    pub prefixes_per_network: u8,
    /// Share of destinations whose path has their network's kind; the others have a random kind.
    pub like_the_network: f64,
    /// Share of destinations whose path draws a second kind, which may equal the first.
    pub changing: f64,
    /// Start of the changes, as a share of the simulated time.
    pub changes_from: f64,
    /// End of the changes, as a share of the simulated time.
    pub changes_to: f64,
    /// Number of connections to all destinations.
    pub connections: u32,
    /// Exponent of Zipf's law: the n-th most popular destination receives connections in proportion to 1 / n to this
    /// power.
    pub popularity_exponent: f64,
    /// Share of connections that the application limits.
    pub app_limited: f64,
    /// Minimum share of the path's rate that such a connection uses.
    pub app_limited_least: f64,
    /// Maximum share of the path's rate that such a connection uses.
    pub app_limited_most: f64,
    /// Simulated time, in seconds.
    pub span_s: u64,
}

impl Population {
    /// Parses the file.
    ///
    /// # Errors
    /// If the text is not a population, or has another version; the error is a sentence.
    pub fn parse(text: &str) -> Result<Population, String> {
        let population: Population = serde_json::from_str(text).map_err(|error| format!("population: {error}"))?;
        if population.format != FORMAT {
            return Err(format!("population: format {}, expected {FORMAT}", population.format));
        }
        Ok(population)
    }
}
