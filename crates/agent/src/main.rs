//! The program `thalweg-agent`. All of its code is in the library, so a static and a dynamic build differ only in
//! linking.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg_agent::main()
}
