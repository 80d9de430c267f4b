//! Signals of a daemon: SIGINT and SIGTERM end it, SIGHUP reloads its settings.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thalweg_store::Problem;

/// Requests received as signals.
#[derive(Clone, Debug)]
pub struct Signals {
    is_over: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

fn catch(signal: i32, flag: &Arc<AtomicBool>) -> Result<(), Problem> {
    register(signal, Arc::clone(flag)).map(drop).map_err(|error| {
        Problem::failed("signals", "this process", error, "signal handlers that can be installed", "try again")
    })
}

impl Signals {
    /// Installs the signal handlers.
    ///
    /// # Errors
    /// If they cannot be installed.
    pub fn catch() -> Result<Signals, Problem> {
        let signals = Signals { is_over: Arc::default(), reload: Arc::default() };
        for (signal, flag) in [(SIGINT, &signals.is_over), (SIGTERM, &signals.is_over), (SIGHUP, &signals.reload)] {
            catch(signal, flag)?;
        }
        Ok(signals)
    }

    /// Ignores SIGHUP from now on.
    ///
    /// # Errors
    /// If the handler cannot be installed.
    pub fn ignore_reload() -> Result<(), Problem> {
        catch(SIGHUP, &Arc::default())
    }

    /// Returns whether the process must end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns whether settings must be reloaded. Clears the request.
    pub fn wants_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }
}
