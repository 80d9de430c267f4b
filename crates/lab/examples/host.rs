//! The process `thalweg-engine host` on its own, for tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    // What goes wrong is told as an event.
    thalweg_lab::host::serve().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
