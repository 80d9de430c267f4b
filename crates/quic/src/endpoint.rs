//! Code shared by the peers of all stacks: options, the certificate, and reports.

use std::fmt::Display;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clap::{Args, ValueEnum};

/// Certificate of the server, which the client trusts.
pub const CERTIFICATE: &str = include_str!("../certificate/cert.pem");
pub const KEY: &str = include_str!("../certificate/key.pem");
/// Name in the certificate.
pub const SERVER_NAME: &str = "localhost";

/// Payload that is passed to a stack per call.
pub static CHUNK: [u8; 64 * 1024] = [0; 64 * 1024];

/// Flow control window of streams and connections: large enough that congestion control is the limit.
pub const WINDOW_BYTES: u32 = 256 * 1024 * 1024;

/// Result of a peer; the error is printed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Options of servers and clients.
#[derive(Args)]
pub struct Endpoint {
    /// Stack of both sides, and congestion control of the sender, which is the server.
    pub sender: Sender,
    /// Address of the server.
    #[arg(long, default_value = "127.0.0.1")]
    pub address: IpAddr,
    /// Port of the server; for 0, the server chooses a free port and prints it.
    #[arg(long, default_value_t = 4433)]
    pub port: u16,
    /// Idle timeout in seconds: time without a packet from the peer after which a connection ends.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub idle_timeout: Duration,
}

impl Endpoint {
    /// Returns the address and port of the server.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// A stack and one of its congestion controls.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sender {
    QuinnCubic,
    QuinnNewreno,
    QuinnBbr,
    S2nCubic,
    S2nBbr,
}

impl Sender {
    pub fn is_quinn(self) -> bool {
        matches!(self, Self::QuinnCubic | Self::QuinnNewreno | Self::QuinnBbr)
    }
}

/// Parses a positive number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    parsed.filter(|duration| !duration.is_zero()).ok_or_else(|| "not a positive number of seconds".into())
}

/// Prints the address of a server that accepts connections.
pub fn report_ready(address: SocketAddr) -> std::io::Result<()> {
    report(format_args!("listening on {address}"))
}

/// Prints a stack's statistics of a connection that has ended.
pub fn report_connection(stack: &str, controller: &str, sent: u64, lost: u64) -> std::io::Result<()> {
    report(format_args!("connection: stack={stack} cc={controller} packets_sent={sent} packets_lost={lost}"))
}

fn report(line: impl Display) -> std::io::Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{line}")?;
    output.flush()
}

pub fn report_error(error: impl Display) {
    eprintln!("thalweg-quic-peer: {error}");
}

/// Returns the unspecified address of the family of `server`, with port 0, for the socket of a client.
pub fn unspecified(server: SocketAddr) -> SocketAddr {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    SocketAddr::new(any, 0)
}
