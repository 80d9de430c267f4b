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

/// Upper bound of `--max-open`.
const MAX_OPEN: i64 = 1 << 24;

/// Form of recorded addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Privacy {
    /// Full addresses and remote ports
    Whole,
    /// Networks: /24 of IPv4, /48 of IPv6
    Truncated,
    /// Keyed hashes; without the key, addresses cannot be recovered
    Hashed,
}

impl Privacy {
    /// Returns the name on the command line and in the status.
    pub fn name(self) -> &'static str {
        match self {
            Privacy::Whole => "whole",
            Privacy::Truncated => "truncated",
            Privacy::Hashed => "hashed",
        }
    }
}

/// Options of recording.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Folder of the record files
    #[arg(long, value_name = "DIR", default_value = "/var/lib/thalweg/records")]
    pub out: PathBuf,
    /// Only connections of this cgroup (v2) and its descendants are recorded (and tuned), instead of the whole machine
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Sampling ratio: record one in N connections; `tune` chooses for all of them, and learns from the recorded ones
    #[arg(long, value_name = "1/N", default_value = "1/1", value_parser = one_in)]
    pub sample: u64,
    /// Level of detail; low: no rows of open connections, and only the columns that `thalweg advise` needs [default:
    /// full]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub detail: Option<Detail>,
    /// Form of recorded addresses: whole, truncated to networks (/24, /48), or hashed with the key of --key
    #[arg(long, value_enum, default_value_t = Privacy::Truncated)]
    pub addresses: Privacy,
    /// Key file of --addresses hashed; created if missing
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY)]
    pub key: PathBuf,
    /// Time with an empty send queue that ends a transfer
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time)]
    pub idle_gap: Duration,
    /// Interval between writes, each to a new file; kill -9 loses the rows since the last one
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub flush: Duration,
    /// Time after which new files are merged into one
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time)]
    pub rotate: Duration,
    /// Total size of new files at which they are merged even before --rotate
    #[arg(long, value_name = "SIZE", default_value = "64MB")]
    pub rotate_size: Bytes,
    /// Total size limit, at least twice --rotate-size; the oldest files are deleted first
    #[arg(long, value_name = "SIZE", default_value = "10GB")]
    pub max_size: Bytes,
    /// Interval between rows of an open connection, with --detail full
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = time)]
    pub interim: Duration,
    /// Capacity for open connections, rounded up to a power of two, at 0.45 kB each [default: 1 % of the memory, from
    /// 16384 to 131072 connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_OPEN))]
    pub max_open: Option<u32>,
    /// Loopback address and port of the Prometheus metrics
    #[arg(long, value_name = "ADDRESS", default_value = http::DEFAULT)]
    pub listen: String,
    /// Do not serve metrics
    #[arg(long, conflicts_with = "listen")]
    pub no_metrics: bool,
    /// Control socket for queries, such as `status` and `top`
    #[arg(long, value_name = "PATH", default_value = socket::DEFAULT)]
    pub socket: PathBuf,
}

impl Options {
    /// Returns the level of detail.
    pub fn detail(&self) -> Detail {
        self.detail.unwrap_or_default()
    }

    /// Returns the capacity for open connections.
    pub fn capacity(&self) -> Capacity {
        let memory = rustix::system::sysinfo();
        let memory_bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
        self.max_open.map_or_else(|| Capacity::on_machine(memory_bytes), Capacity::for_connections)
    }
}

/// Parses a ratio: `1/10` is 10.
fn one_in(text: &str) -> Result<u64, String> {
    let count = text.strip_prefix("1/").and_then(|count| u32::from_str(count).ok()).filter(|count| *count > 0);
    count.map(u64::from).ok_or_else(|| "expected a ratio 1/N, such as \"1/10\"".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time with its unit, such as \"200ms\", \"10s\" or \"1h\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_ratios_and_durations_are_parsed() {
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
