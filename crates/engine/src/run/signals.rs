//! Ctrl-C and similar signals: the first one requests a stop, the second one ends the process immediately.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const INTERRUPTED: i32 = 130;

/// Makes SIGINT and SIGTERM set `flag`; if it is already set, they end the process.
pub fn set_on_signal(flag: &Arc<AtomicBool>) {
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the handler that ends the process must check the flag before the other handler sets it.
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(flag))
            .and_then(|_| flag::register(signal, Arc::clone(flag)))
            .expect("handlers of SIGINT and SIGTERM can be installed");
    }
}
