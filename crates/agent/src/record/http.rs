//! Serves the metrics to programs on this machine: `GET /metrics`, and nothing else.
//!
//! One connection at a time, each with a deadline, and closed after its answer. Any user of the machine may connect; so none
//! of them can make the agent start threads or run out of file descriptors, which the records need.

use super::metrics::Metrics;
use super::snapshot::Observable;
use crate::problem::Problem;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Where the metrics are served unless told otherwise.
pub const DEFAULT: &str = "127.0.0.1:9477";

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait when no client can be accepted, for want of file descriptors.
const RETRY: Duration = Duration::from_millis(200);

/// No request is longer.
const LONGEST_REQUEST: usize = 8192;

/// No request has more headers.
const MOST_HEADERS: usize = 64;

/// Reads `--listen`.
///
/// # Errors
/// If it is no address and port, or one that other machines reach.
pub fn address(listen: &str) -> Result<SocketAddr, Problem> {
    let refused = |code, found: &str, expected: &str, hint: &str| {
        Err(Problem::refused(code, "--listen", format!("{listen}: {found}"), expected, hint))
    };
    let Ok(address) = listen.parse::<SocketAddr>() else {
        return refused("listen", "no address with a port", "an IP address and a port", &format!("--listen {DEFAULT}"));
    };
    if !address.ip().to_canonical().is_loopback() {
        return refused(
            "listen-not-loopback",
            "other machines could read there what this server does, without a password",
            "an address of this machine alone",
            &format!(
                "--listen {DEFAULT}, and let a Prometheus on this machine, or a proxy that asks who is there, pass it on"
            ),
        );
    }
    Ok(address)
}

/// The metrics, served as long as the process lives.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Begins to serve, on a thread of its own. Port 0 takes one that is free.
    ///
    /// # Errors
    /// If the address is refused (see [`address`]) or taken.
    pub fn start(listen: &str, metrics: Arc<Metrics>, observed: Arc<dyn Observable>) -> Result<Server, Problem> {
        let address = address(listen)?;
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                ErrorKind::AddrInUse => {
                    format!("who has it: sudo ss -ltnp 'sport = :{}'; or another port", address.port())
                }
                _ => format!("--listen {DEFAULT}, or --no-metrics"),
            };
            Problem::failed("listen", "--listen", format!("{listen}: {error}"), "an address that is free", &hint)
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let page = move || {
            let others = observed.tuning().map(|tuning| tuning.metrics()).unwrap_or_default();
            metrics.render(&observed.status(), others)
        };
        let serve = move || serve(&listener, &page);
        thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(failed)?;
        Ok(Server { address })
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(listener: &TcpListener, page: &dyn Fn() -> String) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => {
                // A client that went away, or never asked, is no matter.
                let _ = answer(stream, page);
            }
            Err(_) => thread::sleep(RETRY),
        }
    }
}

fn answer(mut stream: TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    let Some(asked) = read_request(&mut stream)? else { return Ok(()) };
    let (status, kind, body) = match asked {
        Asked::Metrics => ("200 OK", prometheus::TEXT_FORMAT, page()),
        Asked::Other => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        Asked::NotGet => ("405 Method Not Allowed", "text/plain", "GET /metrics is all there is\n".to_owned()),
        Asked::Nonsense => ("400 Bad Request", "text/plain", "this is not HTTP\n".to_owned()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Metrics,
    Other,
    NotGet,
    Nonsense,
}

/// Nothing if the client goes away or takes too long.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut request, mut chunk) = (Vec::new(), [0; 1024]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        request.extend_from_slice(&chunk[..count]);
        if let Some(asked) = understand(&request) {
            return Ok(Some(asked));
        }
    }
}

/// Nothing while the request is not complete.
fn understand(text: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(text) {
        Ok(httparse::Status::Partial) if text.len() < LONGEST_REQUEST => return None,
        Ok(httparse::Status::Complete(_)) => {}
        _ => return Some(Asked::Nonsense),
    }
    let path = request.path.unwrap_or_default().split('?').next();
    Some(match (request.method, path) {
        (Some("GET"), Some("/metrics")) => Asked::Metrics,
        (Some("GET"), _) => Asked::Other,
        _ => Asked::NotGet,
    })
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
