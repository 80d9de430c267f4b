//! A bug in one experiment must not take the others with it.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// What a panic on this thread said; nothing while the thread is not guarded.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics inside [`catch`] silent. All others are reported as ever.
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

/// Does something; if it panics, what the panic said.
///
/// What `action` borrows must not be used afterwards if it panicked, unless it is made for that.
pub fn catch<T>(action: impl FnOnce() -> T) -> Result<T, String> {
    SAID.set(Some("a panic that said nothing".to_owned()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(action));
    let message = SAID.take().unwrap_or_default();
    outcome.map_err(|_| message)
}
