//! `thalweg-agent`: what thalweg does on servers. So far it loads congestion controllers into the kernel and looks after them
//! (`thalweg-agent cc`). What it does and its exit codes are described in `docs/reference/agent.md`.

mod arguments;
mod cc;
mod notify;
mod problem;

use arguments::{Arguments, Cc, Command};
use clap::Parser;
use problem::{Exit, Problem};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Command::Cc(command) = Arguments::parse().command;
    let outcome = match command {
        Cc::Load { what, rule, keep } => cc::load(&what, rule.as_deref(), keep, &mut say),
        Cc::Unload { name } => cc::unload(&name, &mut say),
        Cc::List { json } => cc::list(json).and_then(|text| say(&text)),
        Cc::Status { json } => cc::status(json).and_then(|text| say(&text)),
    };
    match outcome {
        Ok(()) => Exit::Finished.into(),
        Err(problem) => {
            eprintln!("thalweg-agent: {problem}");
            problem.exit.into()
        }
    }
}

/// Prints a result at once: somebody may be waiting for it. A reader that has seen enough (`| head`) is no error.
fn say(text: &str) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::failed("output", "standard output", &error, "a reader", "send it somewhere with room"))
        }
        _ => Ok(()),
    }
}
