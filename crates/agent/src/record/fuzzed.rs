//! What of the recorder reads bytes from outside, for tests with damaged ones.

use super::files::{self, Key};
use crate::show::fixture;
use crate::show::http;
use crate::show::metrics::Metrics;
use crate::show::serve::Endpoint;
use crate::show::socket;
use std::path::Path;
use std::sync::Arc;

/// A client of the metrics.
pub fn request(bytes: &[u8]) {
    let pages = http::Pages::of(Arc::new(Metrics::new()), Arc::new(fixture::agent()));
    for is_over in [false, true] {
        let _ = pages.answer(bytes, is_over);
    }
}

/// A client of the socket.
pub fn question(bytes: &[u8]) {
    socket::reply(&fixture::agent(), bytes);
}

/// A file in the folder of records.
pub fn name(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(name) = files::Name::parse(&text) {
        assert_eq!(name.text(), text);
    }
}

/// A file of a key.
pub fn key(path: &Path) {
    let _ = Key::open(path);
}
