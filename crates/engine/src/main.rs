//! The binary `thalweg-engine`: it reads a plan, runs it on an engine, and writes a run directory.
//!
//! Users run `thalweg`, which calls this program. Data goes to standard output, messages to standard error. The events,
//! the exit codes and the run directory are described in `docs/reference/engine-protocol.md` and `run-directory.md`.

mod arguments;
mod capabilities;
mod check;
mod engine;
mod engine_events;
mod engines;
mod machine;
mod merge;
mod plan_file;
mod policy_simulate;
mod run;
mod schema;
mod shell;
mod status;

use arguments::{Arguments, Command, Guest, Policy};
use clap::Parser;
use engine_events::{EngineEvent, Output};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use thalweg_lab::{guest, session, vm};
use thalweg_store::{Exit, Problem};

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(options) => report(|output| run::run(&options, output)),
        Command::Check { plan } => check(&plan),
        Command::Shell(options) => hold(&options),
        Command::Merge { out, parts } => report(|output| merge::merge(&out, &parts, output)),
        Command::Capabilities { json, engines } => capabilities(json, &engines),
        Command::Live { seconds } => live(Duration::from_secs(seconds.into())),
        Command::Policy(Policy::Simulate(options)) => play(&options),
        Command::Host => exit_of("host", thalweg_lab::host::serve()),
        Command::Supervise => exit_of("supervise", thalweg_lab::program::supervise()),
        Command::Reap => exit_of("reap", session::reap()),
        Command::Listen { at } => exit_of("listen", session::listen(at)),
        Command::Guest(Guest::Keep) => exit_of("guest keep", guest::supervisor::keep()),
        Command::Guest(Guest::Begin { .. }) => exit_of("guest begin", guest::inside::begin()),
        Command::Guest(Guest::Boot { .. }) => exit_of("guest boot", vm::inside::boot()),
        Command::Schema { subject } => print(&format!("{:#}\n", schema::schema(subject))),
    }
}

fn capabilities(json: bool, names: &[String]) -> ExitCode {
    match machine::experiments_that_fit() {
        Ok(_) if json => print(&format!("{:#}\n", capabilities::json(names))),
        Ok(_) => print(&capabilities::text(names)),
        Err(problem) => {
            eprintln!("{}\n  hint: {}", problem.sentence(), problem.hint);
            problem.exit.into()
        }
    }
}

fn check(plan: &Path) -> ExitCode {
    match check::refusals(plan) {
        Ok(refusals) => print(&format!("{refusals:#}\n")),
        Err(problem) => {
            complain(&problem);
            problem.exit.into()
        }
    }
}

fn complain(problem: &Problem) {
    eprintln!("thalweg-engine: {}\n  hint: {}", problem.sentence(), problem.hint);
}

fn live(window: Duration) -> ExitCode {
    match thalweg_lab::live::look(window) {
        Ok(report) => print(&format!("{:#}\n", serde_json::to_value(&report).expect("plain values"))),
        Err(error) => {
            eprintln!("{error}");
            Exit::Failed.into()
        }
    }
}

fn play(options: &arguments::Simulate) -> ExitCode {
    match policy_simulate::simulate(options) {
        Ok(result) => print(&format!("{result:#}\n")),
        Err(error) => {
            eprintln!("thalweg-engine policy simulate: {error}");
            Exit::Refused.into()
        }
    }
}

/// Returns the exit code of a process that engines start.
fn exit_of(part: &str, outcome: Result<(), impl std::fmt::Display>) -> ExitCode {
    let Err(error) = outcome else { return Exit::Finished.into() };
    eprintln!("thalweg-engine {part}: {error}");
    Exit::Failed.into()
}

/// Runs a command on a path. Standard output belongs to the command, so events go to the file that the options name, if
/// any.
fn hold(options: &arguments::Shell) -> ExitCode {
    let output = match &options.events {
        None => Output::new(std::io::sink()),
        Some(path) => match File::create(path) {
            Ok(file) => Output::new(file),
            Err(error) => {
                eprintln!("thalweg-engine: {}: {error}", path.display());
                return Exit::NotWritable.into();
            }
        },
    };
    shell::shell(options, &output).unwrap_or_else(|problem| {
        if options.events.is_none() {
            complain(&problem);
        }
        let _ = output.emit(&EngineEvent::error(&problem));
        problem.exit.into()
    })
}

/// Runs an action whose result, including an error, is reported as an event; an error is also printed on standard
/// error.
fn report(action: impl FnOnce(&Output) -> Result<Exit, Problem>) -> ExitCode {
    let output = Output::new(std::io::stdout());
    let exit = action(&output).unwrap_or_else(|problem| {
        complain(&problem);
        // If the reader of events has closed the pipe, the text above and the exit code still report it.
        let _ = output.emit(&EngineEvent::error(&problem));
        problem.exit
    });
    exit.into()
}

/// Prints data. A closed pipe (`| head`) is not an error.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("thalweg-engine: cannot write to standard output: {error}");
            Exit::NotWritable.into()
        }
        _ => Exit::Finished.into(),
    }
}
