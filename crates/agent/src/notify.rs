//! Notifies a service manager of the agent's state: the protocol of systemd's sd_notify(3), for units of `Type=notify`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies the service manager that startup is complete. Ignores failures.
pub fn ready() {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let Some(socket) = socket.to_str() else { return };
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    };
    if let (Ok(sender), Ok(address)) = (UnixDatagram::unbound(), address) {
        let _ = sender.send_to_addr(b"READY=1", &address);
    }
}
