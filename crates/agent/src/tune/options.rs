//! The command line of `tune`.

use crate::record::Options as RecordOptions;
use crate::show::socket::DEFAULT as DEFAULT_SOCKET;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Default path of the learned state.
pub const DEFAULT_STATE: &str = "/var/lib/thalweg/tune.json";

/// Options of tuning.
#[derive(Clone, Debug, Args)]
#[group(id = "tune_options")]
pub struct Options {
    /// Query of a running agent
    #[command(subcommand)]
    pub command: Option<Query>,
    /// Check settings of this machine that affect its connections, and change nothing
    #[arg(long)]
    pub guide: bool,
    /// With --guide: print JSON
    #[arg(long, requires = "guide")]
    pub json: bool,
    /// TOML configuration file; command-line options take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Policy: bayes, ucb, epsilon-greedy, bpftune, ab, static, or a policy file, as from `thalweg advise --policy`
    /// [default: bayes]
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Option<String>,
    /// Two to eight algorithms to choose from, including the system's default [default: those in
    /// net.ipv4.tcp_allowed_congestion_control; of these, dctcp and prague only with an override `data_center`]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub arms: Option<Vec<String>>,
    /// Share of connections that keep the system's default, for comparison; at most 0.01 (guard.least_holdout) for
    /// destinations where the chosen algorithms are significantly better [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub holdout: Option<f64>,
    /// Decide and record, but set no algorithm
    #[arg(long)]
    pub dry_run: bool,
    /// Also choose for peers with loopback, link-local, private or carrier-NAT (100.64.0.0/10) addresses
    #[arg(long)]
    pub private: bool,
    /// Time for which the kernel continues to choose if this process is killed or crashes; 0s: none [default: 5min]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub grace: Option<Duration>,
    /// File of the learned state [default: /var/lib/thalweg/tune.json]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Table of networks (AS, country, ...) for the rules of a policy file: pfx2as, or CSV with a column
    /// `network`, as for `thalweg advise --prefixes`
    #[arg(long, value_name = "FILE")]
    pub prefixes: Option<PathBuf>,
    /// Do not write records
    #[arg(long)]
    pub no_records: bool,
    /// Options of recording.
    #[command(flatten)]
    pub record: RecordOptions,
}

/// Query of a running agent.
#[derive(Clone, Debug, Subcommand)]
pub enum Query {
    /// Show the learned state and the chosen algorithms, by destination
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Maximum number of destinations and of changes, latest first
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Control socket of the agent
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
    /// Explain the choice for a destination
    Explain {
        /// Address or prefix
        #[arg(value_name = "PREFIX")]
        prefix: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Control socket of the agent
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
}

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
    fn shares_are_parsed_as_numbers_or_percentages() {
        assert_eq!((share("0.05"), share("5%"), share("0")), (Ok(0.05), Ok(0.05), Ok(0.0)));
        for wrong in ["5", "-1%", "NaN", "all", "101 %"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
