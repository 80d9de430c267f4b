//! Peers on quinn.

use std::sync::Arc;

use quinn::congestion::{Bbr, BbrConfig, Controller, ControllerFactory, Cubic, CubicConfig, NewReno, NewRenoConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::pem::PemObject;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};

use crate::endpoint::{
    CERTIFICATE, CHUNK, Endpoint, KEY, Outcome, SERVER_NAME, Sender, WINDOW_BYTES, report_connection, report_error,
    report_ready, unspecified,
};

/// Serves until the process is terminated.
pub async fn serve(endpoint: &Endpoint) -> Outcome<()> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes())?;
    let mut config = ServerConfig::with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(KEY.as_bytes())?)?;
    config.transport_config(Arc::new(transport(endpoint)?));
    let server = quinn::Endpoint::server(config, endpoint.socket())?;
    report_ready(server.local_addr()?)?;
    while let Some(incoming) = server.accept().await {
        tokio::spawn(async move {
            if let Err(error) = answer(incoming).await {
                report_error(format_args!("connection: {error}"));
            }
        });
    }
    Ok(())
}

async fn answer(incoming: quinn::Incoming) -> Outcome<()> {
    let connection = incoming.await?;
    let result = send(&connection).await;
    let path = connection.stats().path;
    report_connection("quinn", name(connection.congestion_state()), path.sent_packets, path.lost_packets)?;
    result
}

/// Sends the requested data, until all of it is acknowledged.
async fn send(connection: &quinn::Connection) -> Outcome<()> {
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut size = [0; 8];
    receive.read_exact(&mut size).await?;
    let mut remaining = u64::from_be_bytes(size);
    while remaining > 0 {
        let bytes = remaining.min(CHUNK.len() as u64);
        send.write_all(&CHUNK[..bytes as usize]).await?;
        remaining -= bytes;
    }
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

fn name(controller: Box<dyn Controller>) -> &'static str {
    let controller = controller.into_any();
    if controller.is::<Cubic>() {
        "cubic"
    } else if controller.is::<NewReno>() {
        "newreno"
    } else if controller.is::<Bbr>() {
        "bbr"
    } else {
        "unknown"
    }
}

/// Requests `size` bytes; returns the number of those that arrived.
pub async fn fetch(endpoint: &Endpoint, size: u64) -> Outcome<u64> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(CERTIFICATE.as_bytes())?)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport(endpoint)?));
    let mut client = quinn::Endpoint::client(unspecified(endpoint.socket()))?;
    client.set_default_client_config(config);
    let connection = client.connect(endpoint.socket(), SERVER_NAME)?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&size.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len() as u64;
    }
    connection.close(VarInt::from_u32(0), b"done");
    client.wait_idle().await;
    Ok(received)
}

fn transport(endpoint: &Endpoint) -> Outcome<TransportConfig> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match endpoint.sender {
        Sender::QuinnNewreno => Arc::new(NewRenoConfig::default()),
        Sender::QuinnBbr => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(factory)
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(endpoint.idle_timeout.try_into()?));
    Ok(transport)
}
