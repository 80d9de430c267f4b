//! A host of an experiment without the rest of `thalweg-engine`: what `thalweg-engine host` is, for tests and measurements
//! of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    match thalweg_lab::host::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
