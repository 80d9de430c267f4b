//! Entry points of the parsers of client requests, for fuzz tests.

use super::metrics::Metrics;
use super::serve::Endpoint;
use super::{fixture, http, socket};
use std::sync::Arc;

/// Parses a request to the metrics endpoint.
pub fn request(bytes: &[u8]) {
    let pages = http::Pages::of(Arc::new(Metrics::new()), Arc::new(fixture::agent()));
    for is_over in [false, true] {
        let _ = pages.answer(bytes, is_over);
    }
}

/// Parses a request on the control socket.
pub fn question(bytes: &[u8]) {
    socket::reply(&fixture::agent(), bytes);
}
