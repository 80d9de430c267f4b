//! The program `thalweg-agent`, whose code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg_agent::main()
}
