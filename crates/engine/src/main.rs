//! The binary `thalweg-engine`: it gets a plan, runs it on an engine, and writes a run directory.
//!
//! People use `thalweg`; this is what it calls. Data goes to standard output as JSON, talk to standard error.

mod schema;

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Runs plans of thalweg. `thalweg run` is the friendly way to call it.
#[derive(Debug, Parser)]
#[command(name = "thalweg-engine", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints what scenarios, plans and tables consist of, as JSON.
    Schema {
        /// Of what.
        subject: schema::Subject,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Schema { subject } => print_json(&schema::schema(subject)),
    }
}

/// Prints indented JSON and a newline. A reader that has seen enough (`| head`) is no error.
fn print_json(value: &serde_json::Value) -> ExitCode {
    match writeln!(std::io::stdout().lock(), "{value:#}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thalweg-engine: cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
    }
}
