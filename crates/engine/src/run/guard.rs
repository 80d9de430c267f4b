//! Catches panics, so that a bug in one experiment does not stop the others.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// Message of a panic on this thread; `None` while the thread is not guarded.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Suppresses the output of panics inside [`catch`]. All others are printed as usual.
pub fn install() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_guarded =
            SAID.with_borrow_mut(|message| message.as_mut().map(|message| *message = info.to_string()).is_some());
        if !is_guarded {
            default(info);
        }
    }));
}

/// Runs an action; if it panics, returns the panic's message.
///
/// After a panic, values that `action` borrowed must not be used, unless they are designed for that.
pub fn catch<T>(action: impl FnOnce() -> T) -> Result<T, String> {
    SAID.set(Some("a panic without a message".to_owned()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(action));
    let message = SAID.take().unwrap_or_default();
    outcome.map_err(|_| message)
}
