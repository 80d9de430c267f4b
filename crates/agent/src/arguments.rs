//! The command line.

use crate::log::Level;
use crate::record::Options;
use crate::show::socket::DEFAULT as DEFAULT_SOCKET;
use crate::show::sorting::SortBy;
use crate::tune;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Records the TCP connections of a server, and tunes their congestion control.
#[derive(Debug, Parser)]
#[command(name = "thalweg-agent", version, arg_required_else_help = true, disable_help_flag = true)]
pub struct Arguments {
    /// Print help
    // clap's own flag prints a paragraph per option, which does not fit one screen.
    #[arg(short, long, global = true, display_order = 1000, action = clap::ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// Minimum severity of log lines
    #[arg(long, global = true, value_enum, value_name = "LEVEL", default_value = "info")]
    pub log_level: Level,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load, list and unload congestion controllers written in eBPF
    #[command(subcommand)]
    Cc(Cc),
    /// Record the TCP connections of this machine until interrupted (Ctrl-C)
    #[command(after_help = "Examples:\n  sudo thalweg-agent record\n  sudo thalweg-agent record --cgroup \
                      system.slice/nginx.service --sample 1/10")]
    Record(Box<Options>),
    /// Check whether this machine meets the requirements of `record`, `tune` and `cc`; changes nothing
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep the programs of `tune` attached for the grace time if the agent is killed
    #[command(hide = true, name = "tune-keeper")]
    TuneWatchdog {
        /// Inherited file descriptor of the link
        #[arg(long)]
        link: i32,
        /// Grace time in milliseconds
        #[arg(long)]
        grace_ms: u64,
        /// Control socket of its agent
        #[arg(long)]
        socket: PathBuf,
    },
    /// Open and load the object on standard input, as a test
    #[command(hide = true)]
    CcRehearse,
    /// Choose the congestion control of new connections by measured results for their destination, and record, until
    /// interrupted (Ctrl-C)
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  thalweg-agent tune --guide\n  sudo thalweg-agent tune --dry-run\n  sudo \
                       thalweg-agent tune --arms cubic,bbr\n  sudo thalweg-agent tune status"
    )]
    Tune(Box<tune::Options>),
    /// Show the state of recording: connections, rows, files, lost records, CPU and memory
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Control socket of the agent
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
    /// Show the recorded open connections as a live table
    Top {
        /// Column to sort by
        #[arg(long, value_enum, value_name = "COLUMN", default_value_t)]
        sort: SortBy,
        /// Print the table once, with at most 10,000 connections, for scripts and pipes
        #[arg(long)]
        once: bool,
        /// Control socket of the agent
        #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
        socket: PathBuf,
    },
}

/// Commands for congestion controllers.
#[derive(Debug, Subcommand)]
pub enum Cc {
    /// Register an algorithm with the kernel until interrupted (Ctrl-C) or, with --keep, until `cc unload`
    #[command(after_help = "Examples:\n  sudo thalweg-agent cc load bbr_cpu\n  sudo thalweg-agent cc load bbr3 --set \
                      rule=schedule\n  sudo thalweg-agent cc load bbr_tuned --set probe_gain=1.5 --set \
                      probe_clock=time\n  sudo thalweg-agent cc load mine.bpf.o --keep")]
    Load {
        /// bbr_cpu, bbr3, bbr_tuned, bbr_auto, or a compiled BPF object with one struct_ops map of tcp_congestion_ops
        #[arg(value_name = "NAME|FILE")]
        what: OsString,
        /// Set a parameter; can be repeated. bbr_cpu and bbr3 have only `rule`, the reaction to a shared CPU: bbr_cpu
        /// accepts schedule (the default) and paper, bbr3 accepts none (the default), schedule and paper. bbr_tuned has
        /// the parameters of BBR, such as probe_gain; bbr_auto has these and its own, such as auto_max_gain. A FILE has
        /// no parameters
        #[arg(long, value_name = "PARAM=VALUE")]
        set: Vec<String>,
        /// Same as --set rule=NAME
        #[arg(long, value_name = "NAME")]
        rule: Option<String>,
        /// Return once the algorithm is registered; it stays registered until `cc unload`, another `cc load` of it, or
        /// a reboot
        #[arg(long)]
        keep: bool,
    },
    /// Unregister an eBPF algorithm; if it is the default of this network namespace, the first available of bbr, cubic
    /// and reno becomes the default. Connections that use it keep it until they close
    Unload {
        /// Name, as shown by `cc list`
        name: String,
    },
    /// List the available algorithms, and whether they are written in eBPF
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the state of eBPF algorithms; of built-in ones also the rule, BBR parameters that are not the defaults, and
    /// numbers of connections, ACKs and boosted ACKs (at which a rule raised BBR's pacing rate)
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
