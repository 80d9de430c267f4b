//! `thalweg-engine merge`.

use crate::engine_events::{EngineEvent, Output};
use crate::machine;
use std::path::{Path, PathBuf};
use thalweg_store::{Exit, Problem};

/// Merges run directories.
pub fn merge(out: &Path, parts: &[PathBuf], output: &Output) -> Result<Exit, Problem> {
    let version = env!("CARGO_PKG_VERSION");
    let merged = thalweg_store::merge(out, parts, version, machine::host(), machine::command()?)?;
    if merged.missing > 0 {
        let (missing, experiments, out) = (merged.missing, merged.experiments, out.display());
        eprintln!(
            "thalweg-engine: {missing} of {experiments} experiments are missing from these directories\n  \
             hint: thalweg-engine run --plan '{out}/run.json' --out '{out}'"
        );
    }
    // The files are complete, even if the reader of the events has closed the pipe.
    let _ = output.emit(&EngineEvent::merged(&merged));
    Ok(Exit::Finished)
}
