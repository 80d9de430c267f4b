//! The command line.

use crate::schema::Subject;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// Runs plans of thalweg. `thalweg run` is the friendly way to call it.
#[derive(Debug, Parser)]
#[command(name = "thalweg-engine", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the experiments of a plan, or goes on with a run that was interrupted.
    #[command(after_help = "Example: thalweg-engine run --plan plan.json --out runs/mine --shard 1/4")]
    Run(Run),
    /// Runs a command, or a shell, on the path of a plan's experiment.
    #[command(after_help = "Example: thalweg-engine shell --plan plan.json --out runs/mine -- ping -c 3 10.77.0.2")]
    Shell(Shell),
    /// Joins run directories of one plan, such as the shards that several machines ran.
    #[command(after_help = "Example: thalweg-engine merge --out runs/whole runs/shard-1 runs/shard-2")]
    Merge {
        /// The run directory to make or to add to.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// The run directories to join.
        #[arg(required = true, value_name = "RUN_DIR")]
        parts: Vec<PathBuf>,
    },
    /// Says what each engine can do on this machine.
    Capabilities {
        /// As JSON, with every key that each engine honours.
        #[arg(long)]
        json: bool,
        /// Report this engine only, and do not probe what the others need; may be given several times.
        #[arg(long = "engine", value_name = "NAME")]
        engines: Vec<String>,
    },
    /// Looks at this machine and its connections for a while: does it get its CPUs, and is BBR the slower for it? As
    /// JSON.
    Live {
        /// For how long.
        #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=600))]
        seconds: u16,
    },
    /// Plays policies, which choose an algorithm for each destination, against a population of paths. As JSON.
    #[command(subcommand)]
    Policy(Policy),
    /// Plays one host of an experiment: takes commands as JSON lines, answers the same way. Engines start it.
    Host,
    /// Runs one program of an experiment, and leaves nothing of it. Hosts start it.
    #[command(hide = true)]
    Supervise,
    /// Ends what programs leave in network namespaces. Sessions start it.
    #[command(hide = true)]
    Reap,
    /// Listens at an address and hands the socket over standard input. Sessions start it.
    #[command(hide = true)]
    Listen {
        /// The address.
        at: SocketAddr,
    },
    /// Starts kernels in virtual time, and is the first process of guests. Engines start it.
    #[command(subcommand, hide = true)]
    Guest(Guest),
    /// Prints what scenarios, plans and tables consist of, as JSON.
    Schema {
        /// Of what.
        subject: Subject,
    },
}

/// What to do with policies.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Plays them, and says how much each has lost.
    Simulate(Simulate),
}

/// What to play.
#[derive(Debug, Args)]
pub struct Simulate {
    /// Worlds to play, each drawn from its own seed: 1, 2, and so on.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: u32,
    /// Play only this policy; may be given several times.
    #[arg(long = "policy", value_name = "NAME")]
    pub policies: Vec<String>,
    /// What retransmissions cost: with 1, sending a tenth of all segments again is as bad as taking a tenth longer.
    #[arg(long, value_name = "PRICE", default_value = "1")]
    pub retransmit_price: f64,
}

/// A part in a guest.
#[derive(Debug, Subcommand)]
pub enum Guest {
    /// Starts a kernel in virtual time, and ends with it or when standard input does.
    Keep,
    /// Is the first process of a virtual machine.
    Boot {
        /// Options that the kernel adds for itself.
        rest: Vec<String>,
    },
    /// Is the first process of a kernel in virtual time.
    Begin {
        /// Options that the kernel adds for itself.
        rest: Vec<String>,
    },
}

/// What to run, and how.
#[derive(Debug, Args)]
pub struct Run {
    /// The plan, or a run.json, whose plan is then run again; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,
    /// The run directory. One that holds a part of the same run is completed.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Experiments at a time [default: one per CPU; one where experiments take real time].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Run only every N-th experiment of the plan, beginning with the I-th.
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub shard: Shard,
    /// Run only the experiments that FILE lists, as JSON: [[experiment, repetition], ...].
    #[arg(long, value_name = "FILE")]
    pub due: Option<PathBuf>,
}

/// What to run on a path, and how.
#[derive(Debug, Args)]
pub struct Shell {
    /// The plan; it has one experiment, whose path is used and whose flows are left out.
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
    /// Service of this machine to make reachable at the other end; may be given several times.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub reach: Vec<SocketAddr>,
    /// Record all packets.
    #[arg(long)]
    pub pcap: bool,
    /// Show no status.
    #[arg(long)]
    pub quiet: bool,
    /// File to write events to, a JSON object per line.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// The command and its arguments [default: $SHELL].
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum End {
    /// Where data enters the forward link.
    Sender,
    /// Where it leaves.
    Receiver,
}

/// A part of a plan: every `of`-th experiment, beginning with the `number`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Whether the experiment at `index`, counted from 0, belongs to it.
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
