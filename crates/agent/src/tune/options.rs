//! The command line of `tune`.

use crate::record::Options as RecordOptions;
use crate::show::socket::DEFAULT as DEFAULT_SOCKET;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Where learned state is kept unless told otherwise.
pub const DEFAULT_STATE: &str = "/var/lib/thalweg/tune.json";

/// How to choose.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How to look at an agent that chooses
    #[command(subcommand)]
    pub command: Option<Look>,
    /// Check what else of this machine matters to its connections, and change nothing
    #[arg(long)]
    pub guide: bool,
    /// With --guide: as JSON
    #[arg(long, requires = "guide")]
    pub json: bool,
    /// Settings, in TOML; options of the command line go before them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// bayes (the default), ucb, epsilon-greedy, bpftune, ab or static; or a policy file
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Option<String>,
    /// The algorithms to choose from, the system's default among them; without it, those that are available and allowed
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub arms: Option<Vec<String>>,
    /// Share of connections that keep the system's default, so that the others can be compared with them; 0.05
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub holdout: Option<f64>,
    /// Decide and record, and set nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Choose for loopback, private and link-local addresses as well
    #[arg(long)]
    pub private: bool,
    /// For how long the kernel goes on with the last weights if this process dies; 5min
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub grace: Option<Duration>,
    /// Where learned state is kept
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// What is known of networks (AS, country ...), for the rules of a policy file: CSV with a column `network`, as
    /// `thalweg advise` takes it
    #[arg(long, value_name = "FILE")]
    pub prefixes: Option<PathBuf>,
    /// Write no records
    #[arg(long)]
    pub no_records: bool,
    /// What is recorded.
    #[command(flatten)]
    pub record: RecordOptions,
}

/// How to look at an agent that chooses.
#[derive(Clone, Debug, Subcommand)]
pub enum Look {
    /// What it has learned and chooses, destination by destination
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// How many destinations, those first that were heard of last
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Where the agent answers
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
    /// Why connections to a destination get what they get
    Explain {
        /// An address or a prefix
        #[arg(value_name = "PREFIX")]
        prefix: String,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Where the agent answers
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
}

/// `0.05` or `5%`.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    number
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a share such as 0.05 or 5%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_per_cent() {
        assert_eq!((share("0.05"), share("5%"), share("0")), (Ok(0.05), Ok(0.05), Ok(0.0)));
        for wrong in ["5", "-1%", "NaN", "all", "101 %"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
