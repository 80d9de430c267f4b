//! The program `thalweg-agent`, all of which is in the library: a static and a dynamic build then differ in linking
//! alone.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg_agent::main()
}
