//! Ctrl-C and similar signals: the first one requests a stop, the second one ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// From now on, SIGINT and SIGTERM set `flag`; if it is set already, they end the process.
pub fn set_on_signal(flag: &Arc<AtomicBool>) {
    for signal in [SIGINT, SIGTERM] {
        // In this order: the handler that ends the process checks the flag before the other one sets it.
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(flag))
            .and_then(|_| flag::register(signal, Arc::clone(flag)))
            .expect("handlers of SIGINT and SIGTERM can be installed");
    }
}
