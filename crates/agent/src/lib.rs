//! `thalweg-agent`: the part of thalweg that runs on servers. It loads congestion controllers into the kernel
//! (`thalweg-agent cc`), records connections (`thalweg-agent record`), and chooses their algorithms
//! (`thalweg-agent tune`). `docs/reference/agent.md` describes its behaviour and exit codes.
//!
//! Layers, from top to bottom: `tune`, `record` (the daemon), `show` (answers to clients), `flow` (the kernel side),
//! `cc`.

mod arguments;
mod cc;
mod check;
mod files;
mod flow;
#[cfg(test)]
mod fuzz;
mod libbpf_log;
mod log;
mod notify;
mod object;
mod record;
mod requirements;
mod show;
mod signals;
mod text;
mod tune;
mod watchdog;

use arguments::{Arguments, Cc, Command};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use text::printable;
use thalweg_store::{Exit, Problem};

/// Runs the command that the arguments of the process select, and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::set_level(arguments.log_level);
    match run(arguments.command) {
        Ok(()) => Exit::Finished.into(),
        Err(problem) => {
            log::error(&problem.to_string());
            problem.exit.into()
        }
    }
}

fn run(command: Command) -> Result<(), Problem> {
    match command {
        Command::Cc(Cc::Load { what, set, rule, keep }) => {
            cc::load(&what, &cc::settable::parse(&set, rule.as_deref())?, keep, &mut print)
        }
        Command::Cc(Cc::Unload { name }) => cc::unload(&name, &mut print),
        Command::Cc(Cc::List { json }) => print(&cc::list(json)?),
        Command::Cc(Cc::Status { json }) => print(&cc::status(json)?),
        Command::Check { json } => check::check(json, &mut print),
        Command::TuneWatchdog { link: _, grace_ms, socket: _ } => watchdog::run(Duration::from_millis(grace_ms)),
        Command::CcRehearse => cc::rehearsal::run(),
        Command::Record(options) => record::record(&options, &signals::Signals::catch()?),
        Command::Tune(options) => tune::tune(&options, &mut print),
        Command::Status { json, socket } => print(&show::status::status(&socket, json)?),
        Command::Top { sort, once: true, socket } => print(&show::top::once(&socket, sort)?),
        Command::Top { sort, once: false, socket } => show::top::live(&socket, sort),
    }
}

/// Prints a result and flushes it, because a script may wait for it. A closed pipe (`| head`) is not an error.
fn print(text: &str) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Problem::failed(
            "output",
            "standard output",
            &error,
            "writable output",
            "check the disk or the program that receives the output",
        )),
        _ => Ok(()),
    }
}
