//! A server and a client of a QUIC stack, for flows that are programs.
//!
//!     thalweg-quic-peer server quinn-cubic --address 10.0.0.1 --port 4433
//!     thalweg-quic-peer client quinn-cubic --address 10.0.0.1 --port 4433 --size 1000000
//!
//! The client opens a stream and sends the size as eight bytes, big-endian; the server answers with that many bytes and
//! ends the stream. The client exits with 0 only if all of them have arrived. Both use the certificate in this
//! repository, which provides no security.
//!
//! At the end of a connection the server prints its congestion control, and the packets that the stack has sent and
//! lost.

mod endpoint;
mod quinn_peer;
mod s2n_peer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::endpoint::{Endpoint, Outcome, report_error};

#[derive(Parser)]
#[command(about = "Transfers bytes over QUIC, as a server or as a client")]
struct Options {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Sends the requested data, until it is terminated.
    Server {
        #[command(flatten)]
        endpoint: Endpoint,
    },
    /// Receives bytes from a server, and exits.
    Client {
        #[command(flatten)]
        endpoint: Endpoint,
        /// Bytes to receive.
        #[arg(long)]
        size: u64,
    },
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(&Options::parse()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(error);
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Outcome<()> {
    match &options.role {
        Role::Server { endpoint } if endpoint.sender.is_quinn() => quinn_peer::serve(endpoint).await,
        Role::Server { endpoint } => s2n_peer::serve(endpoint).await,
        Role::Client { endpoint, size } => {
            let received = if endpoint.sender.is_quinn() {
                quinn_peer::fetch(endpoint, *size).await
            } else {
                s2n_peer::fetch(endpoint, *size).await
            };
            let server = endpoint.socket();
            check_size(received.map_err(|error| format!("the transfer from {server} failed: {error}"))?, *size)
        }
    }
}

fn check_size(received: u64, size: u64) -> Outcome<()> {
    if received == size { Ok(()) } else { Err(format!("received {received} bytes, expected {size}").into()) }
}
