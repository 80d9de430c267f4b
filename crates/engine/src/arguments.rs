//! The command line.

use crate::schema::Subject;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// Run plans of thalweg. Users run `thalweg run`, which calls this program.
#[derive(Debug, Parser)]
#[command(name = "thalweg-engine", version)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the experiments of a plan, or resume an interrupted run.
    #[command(after_help = "Example: thalweg-engine run --plan plan.json --out runs/mine --shard 1/4")]
    Run(Run),
    /// Check whether the engine of a plan can run its experiments on this machine, without running them. Prints JSON.
    Check {
        /// The plan, or a run.json; `-` reads standard input.
        #[arg(long, value_name = "FILE")]
        plan: PathBuf,
    },
    /// Run a command, or a shell, on the path of a plan's experiment.
    #[command(after_help = "Example: thalweg-engine shell --plan plan.json --out runs/mine -- ping -c 3 10.77.0.2")]
    Shell(Shell),
    /// Merge run directories of one plan, such as the shards that several machines ran.
    #[command(after_help = "Example: thalweg-engine merge --out runs/whole runs/shard-1 runs/shard-2")]
    Merge {
        /// Run directory; created if missing, extended if it holds a part of the same run.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The run directories to merge.
        #[arg(required = true, value_name = "RUN_DIR")]
        parts: Vec<PathBuf>,
    },
    /// Report the capabilities of each engine on this machine.
    Capabilities {
        /// Print JSON, with every scenario key that each engine supports.
        #[arg(long)]
        json: bool,
        /// Report this engine only, and do not probe the requirements of others; may be given several times.
        #[arg(long = "engine", value_name = "NAME")]
        engines: Vec<String>,
    },
    /// Measure how much CPU time this machine lacks, and which BBR connections are slower for that reason.
    /// Prints JSON.
    Live {
        /// Duration in seconds, from 1 to 600.
        #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=600))]
        seconds: u16,
    },
    /// Simulate policies, which choose an algorithm for each destination, on a population of paths. Prints JSON.
    #[command(subcommand)]
    Policy(Policy),
    /// Run one host of an experiment: read commands and write events, as JSON lines. Started by engines.
    Host,
    /// Run one program of an experiment, and terminate the processes that it leaves. Started by hosts.
    #[command(hide = true)]
    Supervise,
    /// Terminate processes that programs leave in network namespaces. Started by sessions.
    #[command(hide = true)]
    Reap,
    /// Listen at an address and pass the socket over standard input. Started by sessions.
    #[command(hide = true)]
    Listen {
        /// Address and port.
        at: SocketAddr,
    },
    /// Start kernels in virtual time, or run as the first process of a guest. Started by engines.
    #[command(subcommand, hide = true)]
    Guest(Guest),
    /// Print the schema of scenarios or of plans, or the columns of tables, as JSON.
    Schema {
        /// What to print.
        subject: Subject,
    },
}

/// Commands for policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Simulate policies, and print the regret of each.
    Simulate(Simulate),
}

/// Policies to simulate.
#[derive(Debug, Args)]
pub struct Simulate {
    /// Number of simulated populations, each drawn from its own seed: 1, 2, and so on.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: u32,
    /// Simulate only this policy; may be given several times.
    #[arg(long = "policy", value_name = "NAME")]
    pub policies: Vec<String>,
    /// Price of retransmissions: with 1, retransmitting a tenth of all segments is as bad as a completion time that is
    /// a tenth longer.
    #[arg(long, value_name = "PRICE", default_value = "1")]
    pub retransmit_price: f64,
}

/// A process in a guest, or the one that starts a guest.
#[derive(Debug, Subcommand)]
pub enum Guest {
    /// Start a kernel in virtual time, and exit with it or at the end of standard input.
    Keep,
    /// Run as the first process of a virtual machine.
    Boot {
        /// Options that the kernel adds.
        rest: Vec<String>,
    },
    /// Run as the first process of a kernel in virtual time.
    Begin {
        /// Options that the kernel adds.
        rest: Vec<String>,
    },
}

/// Experiments to run, and options.
#[derive(Debug, Args)]
pub struct Run {
    /// The plan, or a run.json, whose plan is run again; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// The run directory. If it holds a part of the same run, the run is resumed.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Maximum number of concurrent experiments [default: one per CPU; one if experiments take real time].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Run only every N-th experiment of the plan, beginning with the I-th.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// Run only the experiments that FILE lists, as JSON: [[experiment, repetition], ...].
    #[arg(long, value_name = "FILE")]
    pub due: Option<PathBuf>,
}

/// Programs to run on a path, and options.
#[derive(Debug, Args)]
pub struct Shell {
    /// The plan; it has one experiment, whose path is used and whose flows are ignored.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// The run directory.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The end of the path at which the command runs.
    #[arg(long, value_name = "END", default_value = "sender")]
    pub on: End,
    /// Command line to run at the other end, with `sh -c`.
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<OsString>,
    /// Engine kernel: TCP service of this machine that is made reachable at the other end; may be given several times.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub reach: Vec<SocketAddr>,
    /// Engine kernel: record all packets.
    #[arg(long)]
    pub pcap: bool,
    /// Do not show the status of the path.
    #[arg(long)]
    pub quiet: bool,
    /// File to write events to, a JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// The command and its arguments; required for the engine uml [default: $SHELL].
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// The end at which data enters the forward link.
    Sender,
    /// The end at which data leaves the forward link.
    Receiver,
}

/// A part of a plan: every `of`-th experiment, beginning with the `number`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Returns whether the experiment at `index`, from 0, is part of the shard.
    pub fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("expected I/N with I from 1 to N, such as 2/4".to_owned()),
        }
    }
}
