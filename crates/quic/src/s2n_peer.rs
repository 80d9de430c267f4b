//! Peers on s2n-quic.

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::limits::Limits;
use s2n_quic::{Client, Connection, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::endpoint::{
    CERTIFICATE, CHUNK, Endpoint, KEY, Outcome, SERVER_NAME, Sender, WINDOW_BYTES, report_connection, report_error,
    report_ready, unspecified,
};

/// Serves until the process is terminated.
pub async fn serve(endpoint: &Endpoint) -> Outcome<()> {
    let server = Server::builder()
        .with_tls((CERTIFICATE, KEY))?
        .with_io(endpoint.socket())?
        .with_limits(limits(endpoint)?)?
        .with_event(Reporter)?;
    let mut server = if endpoint.sender == Sender::S2nBbr {
        server.with_congestion_controller(Bbr::default())?.start()?
    } else {
        server.with_congestion_controller(Cubic::default())?.start()?
    };
    report_ready(server.local_addr()?)?;
    while let Some(connection) = server.accept().await {
        tokio::spawn(async move {
            if let Err(error) = answer(connection).await {
                report_error(format_args!("connection: {error}"));
            }
        });
    }
    Ok(())
}

/// Sends the requested data, until all of it is acknowledged.
async fn answer(mut connection: Connection) -> Outcome<()> {
    let Some(stream) = connection.accept_bidirectional_stream().await? else { return Ok(()) };
    let (mut receive, mut send) = stream.split();
    let mut remaining = receive.read_u64().await?;
    while remaining > 0 {
        let bytes = remaining.min(CHUNK.len() as u64);
        send.write_all(&CHUNK[..bytes as usize]).await?;
        remaining -= bytes;
    }
    send.close().await?;
    Ok(())
}

/// Counts the events of each connection, and reports them when it ends.
struct Reporter;

#[derive(Default)]
struct Counts {
    sent: u64,
    lost: u64,
    /// Number of delivery rate samples, which s2n-quic takes only for controllers that estimate bandwidth: BBR.
    rate_samples: u64,
}

impl Subscriber for Reporter {
    type ConnectionContext = Counts;

    fn create_connection_context(&mut self, _meta: &ConnectionMeta, _info: &ConnectionInfo) -> Counts {
        Counts::default()
    }

    fn on_packet_sent(&mut self, counts: &mut Counts, _meta: &ConnectionMeta, _event: &events::PacketSent) {
        counts.sent += 1;
    }

    fn on_packet_lost(&mut self, counts: &mut Counts, _meta: &ConnectionMeta, _event: &events::PacketLost) {
        counts.lost += 1;
    }

    fn on_delivery_rate_sampled(
        &mut self,
        counts: &mut Counts,
        _meta: &ConnectionMeta,
        _event: &events::DeliveryRateSampled,
    ) {
        counts.rate_samples += 1;
    }

    fn on_connection_closed(&mut self, counts: &mut Counts, _meta: &ConnectionMeta, _event: &events::ConnectionClosed) {
        let controller = if counts.rate_samples > 0 { "bbr" } else { "cubic" };
        if let Err(error) = report_connection("s2n", controller, counts.sent, counts.lost) {
            report_error(error);
        }
    }
}

/// Requests `size` bytes; returns the number of those that arrived.
pub async fn fetch(endpoint: &Endpoint, size: u64) -> Outcome<u64> {
    let mut client = Client::builder()
        .with_tls(CERTIFICATE)?
        .with_io(unspecified(endpoint.socket()))?
        .with_limits(limits(endpoint)?)?
        .start()?;
    let mut connection = client.connect(Connect::new(endpoint.socket()).with_server_name(SERVER_NAME)).await?;
    let (mut receive, mut send) = connection.open_bidirectional_stream().await?.split();
    send.write_u64(size).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(bytes) = receive.receive().await? {
        received += bytes.len() as u64;
    }
    drop(connection);
    client.wait_idle().await?;
    Ok(received)
}

fn limits(endpoint: &Endpoint) -> Outcome<Limits> {
    let window = u64::from(WINDOW_BYTES);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_max_send_buffer_size(WINDOW_BYTES)?
        .with_max_handshake_duration(endpoint.idle_timeout)?
        .with_max_idle_timeout(endpoint.idle_timeout)?)
}
