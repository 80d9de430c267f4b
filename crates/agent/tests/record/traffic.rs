//! Connections between two network namespaces; this process controls both ends.

use crate::common::Namespace;
use crate::common::wait_until;
use crate::stage::inside;
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A connection.
pub struct Pair {
    /// The end that opened the connection.
    pub client: TcpStream,
    /// The end that accepted the connection.
    pub server: TcpStream,
}

/// Connects from the second namespace to `to`, an address of the first.
pub fn connect(namespaces: &(Namespace, Namespace), to: &str) -> Pair {
    let listener = listen(&namespaces.0, to);
    connect_to(&namespaces.1, &listener, to)
}

/// Listens in a namespace, on a free port.
pub fn listen(namespace: &Namespace, to: &str) -> TcpListener {
    inside(namespace, || TcpListener::bind((to, 0)).expect("a free port"))
}

/// Connects from a namespace.
pub fn connect_to(from: &Namespace, listener: &TcpListener, to: &str) -> Pair {
    let port = listener.local_addr().expect("an address").port();
    let address: SocketAddr = SocketAddr::new(to.parse().expect("an address"), port);
    let client = inside(from, || TcpStream::connect(address).expect("a connection"));
    let (server, _) = listener.accept().expect("it has come");
    Pair { client, server }
}

impl Pair {
    /// Returns the port of the client.
    pub fn client_port(&self) -> u64 {
        self.client.local_addr().expect("an address").port().into()
    }

    /// Returns the port of the server.
    pub fn server_port(&self) -> u64 {
        self.server.local_addr().expect("an address").port().into()
    }

    /// Sends data from the server to the client.
    pub fn download(&mut self, bytes: usize) {
        send(&mut self.server, &mut self.client, bytes);
    }

    /// Sends data from the client to the server.
    pub fn upload(&mut self, bytes: usize) {
        send(&mut self.client, &mut self.server, bytes);
    }

    /// Waits until the data that the server has sent is acknowledged.
    pub fn settle(&self, namespace: &Namespace) {
        let port = format!(":{}", self.server_port());
        wait_until("all is acknowledged", || {
            // Columns: state, received bytes not yet read, sent bytes not yet acknowledged.
            let listed = namespace.output(&["ss", "-Htn", "sport", "=", &port]);
            listed.lines().all(|line| line.split_whitespace().nth(2) == Some("0"))
        });
    }

    /// Closes the server first.
    pub fn close_by_server(mut self) {
        drop(self.server);
        assert_eq!(self.client.read(&mut [0; 1]).expect("an end"), 0);
    }

    /// Closes the client first.
    pub fn close_by_client(mut self) {
        drop(self.client);
        assert_eq!(self.server.read(&mut [0; 1]).expect("an end"), 0);
    }
}

fn send(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&vec![0x5a; bytes]).expect("it is sent"));
        let mut received = vec![0; bytes];
        to.read_exact(&mut received).expect("it arrives");
    });
}

/// Configures a socket so that closing it resets the connection.
pub fn reset_on_close(socket: &TcpStream) {
    sockopt::set_socket_linger(socket, Some(Duration::ZERO)).expect("the kernel takes it");
}
