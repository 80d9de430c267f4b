//! The process `thalweg-engine host` as a separate program, for tests and examples of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Errors are reported as an event.
    thalweg_lab::host::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
