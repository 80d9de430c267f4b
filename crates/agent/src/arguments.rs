//! The command line.

use crate::log::Level;
use crate::record::Options;
use crate::show::socket::DEFAULT as DEFAULT_SOCKET;
use crate::show::sorting::SortBy;
use crate::tune;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Looks after the congestion control of a server.
#[derive(Debug, Parser)]
#[command(name = "thalweg-agent", version, arg_required_else_help = true)]
pub struct Arguments {
    /// The least important lines of the log that are written
    #[arg(long, global = true, value_enum, value_name = "LEVEL", default_value = "info")]
    pub log_level: Level,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load congestion controllers written in eBPF, and look after them
    #[command(subcommand)]
    Cc(Cc),
    /// Write down what every connection of this machine does, until this command ends (Ctrl-C)
    #[command(
        after_help = "Examples:\n  sudo thalweg-agent record\n  sudo thalweg-agent record --cgroup system.slice/nginx.service --sample 1/10"
    )]
    Record(Box<Options>),
    /// Check what `record`, `tune` and `cc` need of this machine, and change nothing
    Check {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Keeps what `tune` has attached for a time if that is killed
    #[command(hide = true)]
    TuneKeeper {
        /// The inherited file
        #[arg(long)]
        link: i32,
        /// For how long
        #[arg(long)]
        grace_ms: u64,
        /// Where its agent answers
        #[arg(long)]
        socket: PathBuf,
    },
    /// Opens and loads the object on standard input, to see whether that can be done
    #[command(hide = true)]
    CcRehearse,
    /// Give each new connection the congestion control that works best towards its destination, and record, until this
    /// command ends (Ctrl-C)
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  thalweg-agent tune --guide\n  sudo thalweg-agent tune --dry-run\n  sudo thalweg-agent tune --arms cubic,bbr\n  \
                      sudo thalweg-agent tune status"
    )]
    Tune(Box<tune::Options>),
    /// How recording goes: connections, rows, files, what was lost, what it costs
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Where the agent that records answers
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
    /// The open connections that are recorded, as a live table
    Top {
        /// What stands first
        #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
        sort: SortBy,
        /// Print the table once, with up to 10,000 connections: for scripts and pipes
        #[arg(long)]
        once: bool,
        /// Where the agent that records answers
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
}

/// What to do with congestion controllers.
#[derive(Debug, Subcommand)]
pub enum Cc {
    /// Register an algorithm with the kernel; it ends with this command (Ctrl-C), unless --keep
    #[command(
        after_help = "Examples:\n  sudo thalweg-agent cc load bbr_cpu\n  sudo thalweg-agent cc load bbr3 --set rule=schedule\n  sudo thalweg-agent cc load bbr_tuned --set probe_gain=1.5 --set probe_clock=time\n  sudo thalweg-agent cc load mine.bpf.o --keep"
    )]
    Load {
        /// bbr_cpu, bbr3, bbr_tuned, or a compiled BPF object with one struct_ops map of tcp_congestion_ops
        #[arg(value_name = "NAME|FILE")]
        what: OsString,
        /// A parameter: `rule` of bbr_cpu (paper, schedule) and bbr3 (none, paper, schedule), or one of bbr_tuned
        #[arg(long, value_name = "PARAM=VALUE")]
        set: Vec<String>,
        /// The same as --set rule=NAME
        #[arg(long, value_name = "NAME")]
        rule: Option<String>,
        /// Return once it is registered; it stays until `cc unload`, or the next start of the machine
        #[arg(long)]
        keep: bool,
    },
    /// Take an algorithm back; connections that use it keep it until they close
    Unload {
        /// Its name, as `cc list` shows it
        name: String,
    },
    /// The algorithms that connections here can use, and which of them are eBPF
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The eBPF algorithms at work: connections, ACKs, how often bbr_cpu has stepped in
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
