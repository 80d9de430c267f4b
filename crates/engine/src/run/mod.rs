//! `thalweg-engine run`.

mod due;
mod guard;
mod signals;
mod work;

#[cfg(test)]
mod tests;

use crate::arguments;
use crate::engine::Engine;
use crate::engine_events::{EngineEvent, Output, seconds};
use crate::engines::{self, ENGINES};
use crate::machine;
use crate::plan_file;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use thalweg_store::{Exit, Problem, RunDirectory, RunFile};
use work::{Halt, Work};

/// Runs the missing experiments of a plan.
pub fn run(options: &arguments::Run, output: &Output) -> Result<Exit, Problem> {
    let fit = machine::experiments_that_fit()?;
    let plan = plan_file::read(&options.plan)?;
    let engine = find_engine(&plan.engine)?;
    let chosen = due::chosen(options, &plan)?;
    // Installed only now: before this, there is no work to finish, and a signal should simply kill the process.
    let interrupted = Arc::new(AtomicBool::new(false));
    signals::set_on_signal(&interrupted);
    guard::install();
    let host = machine::host();
    let run = RunFile::new(plan, env!("CARGO_PKG_VERSION"), &engine.result_version(), host, machine::command()?);
    let directory = RunDirectory::open(&options.out, run)?;
    let threads = options.threads.map_or_else(|| if engine.is_real_time() { 1 } else { machine::cores() }, usize::from);
    execute(engine, &directory, &chosen, threads.min(fit), output, &interrupted)
}

/// Returns the engine of this name, if this machine can run it.
pub fn find_engine(name: &str) -> Result<&'static dyn Engine, Problem> {
    let problem = |code, found: String, expected: String| Problem {
        exit: Exit::Refused,
        code,
        place: "engine".to_owned(),
        found,
        expected,
        hint: "list the engines and their requirements: thalweg-engine capabilities".to_owned(),
    };
    let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name()).collect();
    let engine = engines::find(name)
        .ok_or_else(|| problem("unknown-engine", format!("`{name}`"), format!("one of {}", names.join(", "))))?;
    match engine.why_not() {
        Some(why) => Err(problem("engine-unavailable", why, format!("a machine that can run {name}"))),
        None => Ok(engine),
    }
}

/// Runs those of the `chosen` experiments that `directory` lacks; `chosen` are indices in the plan.
fn execute(
    engine: &dyn Engine,
    directory: &RunDirectory,
    chosen: &[usize],
    threads: usize,
    output: &Output,
    interrupted: &AtomicBool,
) -> Result<Exit, Problem> {
    let start = Instant::now();
    let is_pending = |index: &usize| !directory.was_present(&directory.run().experiments[*index].id);
    let pending: Vec<usize> = chosen.iter().copied().filter(is_pending).collect();
    let present = chosen.len() - pending.len();
    let begin = EngineEvent::Plan { experiments: chosen.len(), present, pending: pending.len(), threads };
    let has_reader = output.emit(&begin).is_ok();
    let work = Work::new(engine, directory, &pending, output, interrupted);
    if has_reader {
        work.do_all(threads);
    }
    let (finished, failed) = (work.finished(), work.failed());
    match work.into_halt() {
        Some(Halt::Store(error)) => return Err(error.into()),
        None if has_reader && !interrupted.load(Ordering::Relaxed) => {}
        _ => {
            directory.note(&EngineEvent::Interrupted)?;
            directory.sync()?;
            // The write fails if the reader of events has exited.
            let _ = output.emit(&EngineEvent::Interrupted);
            return Ok(Exit::Interrupted);
        }
    }
    directory.sync()?;
    // All results are on the disk, even if the reader of events has exited.
    let _ = output.emit(&EngineEvent::Done { finished, failed, present, seconds: seconds(start.elapsed()) });
    Ok(if failed == 0 { Exit::Finished } else { Exit::Failed })
}
