//! The command line of `record`.

use super::detail::Detail;
use super::files::DEFAULT_KEY;
use crate::flow::capacity::Capacity;
use crate::show::http;
use crate::show::socket;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use thalweg_units::Bytes;

/// More than a machine can have.
const MOST_OPEN: i64 = 1 << 24;

/// What is kept of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Privacy {
    /// All of them, and peers' ports
    Whole,
    /// The networks: /24 of IPv4, /48 of IPv6
    Truncated,
    /// Numbers that only the owner of a key can lead back to addresses
    Hashed,
}

impl Privacy {
    /// Its name on the command line and in the status.
    pub fn name(self) -> &'static str {
        match self {
            Privacy::Whole => "whole",
            Privacy::Truncated => "truncated",
            Privacy::Hashed => "hashed",
        }
    }
}

/// What to record, and where to.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Folder of the records
    #[arg(long, value_name = "DIR", default_value = "/var/lib/thalweg/records")]
    pub out: PathBuf,
    /// Record the connections of this cgroup (v2) and those below it only, not of the whole machine
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Record one connection in N
    #[arg(long, value_name = "1/N", default_value = "1/1", value_parser = one_in)]
    pub sample: u64,
    /// How much to record of each connection; full
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub detail: Option<Detail>,
    /// What to keep of addresses
    #[arg(long, value_enum, default_value_t = Privacy::Truncated)]
    pub addresses: Privacy,
    /// File of the key for --addresses hashed; it is made if it is not there
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY)]
    pub key: PathBuf,
    /// A send queue that was empty for this long ends a transfer
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time)]
    pub idle_gap: Duration,
    /// How often rows are written: what a kill -9 loses at most
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub flush: Duration,
    /// How much time a file of records covers
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    pub rotate: Duration,
    /// How large it may become before that
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub rotate_size: Bytes,
    /// How large all files together may become; then the oldest go
    #[arg(long, value_name = "SIZE", default_value = "10GB")]
    pub max_size: Bytes,
    /// How often a connection that stays open has a row
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = time)]
    pub interim: Duration,
    /// How many connections there is room for at once, at 0.45 kB each; without it as many as 1 % of the memory holds,
    /// at most 131072
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_OPEN))]
    pub max_open: Option<u32>,
    /// Where Prometheus finds the metrics: on this machine only
    #[arg(long, value_name = "ADDRESS", default_value = http::DEFAULT)]
    pub listen: String,
    /// Serve no metrics
    #[arg(long, conflicts_with = "listen")]
    pub no_metrics: bool,
    /// Where `status` and `top` ask
    #[arg(long, value_name = "PATH", default_value = socket::DEFAULT)]
    pub socket: PathBuf,
}

impl Options {
    /// How much is recorded of each connection.
    pub fn detail(&self) -> Detail {
        self.detail.unwrap_or_default()
    }

    /// How many connections there is room for at once.
    pub fn capacity(&self) -> Capacity {
        let memory = rustix::system::sysinfo();
        let memory_bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
        self.max_open.map_or_else(|| Capacity::on_machine(memory_bytes), Capacity::for_connections)
    }
}

/// `1/10` is 10.
fn one_in(text: &str) -> Result<u64, String> {
    let count = text.strip_prefix("1/").and_then(|count| u32::from_str(count).ok()).filter(|count| *count > 0);
    count.map(u64::from).ok_or_else(|| "expected one in so many, such as \"1/10\"".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time with its unit, such as \"200ms\", \"10s\" or \"1h\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_times_are_read() {
        assert_eq!(one_in("1/1"), Ok(1));
        assert_eq!(one_in("1/1000"), Ok(1000));
        for wrong in ["1/0", "2/3", "0.1", "1/-5", "1/", "1/5000000000"] {
            assert!(one_in(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(time("1min"), Ok(Duration::from_secs(60)));
        assert!(time("0s").is_err() && time("10").is_err());
    }
}
