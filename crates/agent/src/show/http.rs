//! Serves the metrics to programs on this machine: `GET /metrics`.

use super::metrics::Metrics;
use super::observable::Observable;
use super::serve::{self, Endpoint};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use thalweg_store::Problem;

/// Default address of the metrics.
pub const DEFAULT: &str = "127.0.0.1:9477";

const MAX_REQUEST_BYTES: usize = 8192;

const MAX_HEADERS: usize = 64;

/// Parses `--listen`.
///
/// # Errors
/// If it is not an address and port, or is reachable from other machines.
pub fn address(listen: &str) -> Result<SocketAddr, Problem> {
    let refused = |code, found: &str, expected: &str, hint: &str| {
        Err(Problem::refused(code, "--listen", format!("{listen}: {found}"), expected, hint))
    };
    let Ok(address) = listen.parse::<SocketAddr>() else {
        return refused(
            "listen",
            "not an address with a port",
            "an IP address and a port",
            &format!("--listen {DEFAULT}"),
        );
    };
    if !address.ip().to_canonical().is_loopback() {
        return refused(
            "listen-not-loopback",
            "other machines could read the metrics there without authentication",
            "a loopback address",
            &format!(
                "--listen {DEFAULT}; a local Prometheus, or a proxy with authentication, can make the metrics \
                 available to other machines"
            ),
        );
    }
    Ok(address)
}

/// The metrics endpoint, which serves until the process exits.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Starts the endpoint on a separate thread. Port 0 selects a free port.
    ///
    /// # Errors
    /// If the address is rejected (see [`address`]) or in use, or the thread cannot be created.
    pub fn start(listen: &str, metrics: Arc<Metrics>, observed: Arc<dyn Observable>) -> Result<Server, Problem> {
        let address = address(listen)?;
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                ErrorKind::AddrInUse => {
                    format!(
                        "find the process that uses it: sudo ss -ltnp 'sport = :{}'; or choose another port",
                        address.port()
                    )
                }
                _ => format!("--listen {DEFAULT}, or --no-metrics"),
            };
            Problem::failed("listen", "--listen", format!("{listen}: {error}"), "an unused address", &hint)
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        serve::start("metrics", Pages { listener, metrics, observed }).map_err(failed)?;
        Ok(Server { address })
    }

    /// Returns the address of the endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

pub(super) struct Pages {
    listener: TcpListener,
    metrics: Arc<Metrics>,
    observed: Arc<dyn Observable>,
}

#[cfg(test)]
impl Pages {
    /// Returns an endpoint on a free port.
    pub(super) fn of(metrics: Arc<Metrics>, observed: Arc<dyn Observable>) -> Pages {
        Pages { listener: TcpListener::bind("127.0.0.1:0").expect("a free port"), metrics, observed }
    }
}

impl Endpoint for Pages {
    fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn admits(&self, _client: &OwnedFd) -> bool {
        true
    }

    fn answer(&self, request: &[u8], _is_over: bool) -> Option<Vec<u8>> {
        let text = |text: &str| ("text/plain", text.to_owned());
        let (status, (kind, body)) = match understand(request)? {
            Target::Metrics => {
                let others = self.observed.tuning().map(|tuning| tuning.metrics()).unwrap_or_default();
                ("200 OK", (prometheus::TEXT_FORMAT, self.metrics.render(&self.observed.status(), others)))
            }
            Target::Other => ("404 Not Found", text("the metrics are at /metrics\n")),
            Target::NotGet => ("405 Method Not Allowed", text("only GET /metrics is supported\n")),
            Target::Malformed => ("400 Bad Request", text("malformed HTTP request\n")),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        Some((head + &body).into_bytes())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Metrics,
    Other,
    NotGet,
    Malformed,
}

/// Returns the target of a request; `None` while the request is incomplete.
fn understand(text: &[u8]) -> Option<Target> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(text) {
        Ok(httparse::Status::Partial) if text.len() < MAX_REQUEST_BYTES => return None,
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Some(Target::Malformed),
    }
    let path = request.path.unwrap_or_default().split('?').next();
    Some(match (request.method, path) {
        (Some("GET"), Some("/metrics")) => Target::Metrics,
        (Some("GET"), _) => Target::Other,
        _ => Target::NotGet,
    })
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
