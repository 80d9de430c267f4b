//! Makes services of the machine reachable over the path.
//!
//! ```text
//!  command ── TCP over the path ──► listener at the other end, handed over a Unix socket
//!                                     └► forwarder, in the machine's namespace ──► 127.0.0.1:8080
//! ```
//!
//! A socket stays in the namespace in which it was created. Therefore, `thalweg-engine listen` creates the listeners in
//! the namespace and passes them to the engine, which connects to the services from the machine's namespace.

use crate::error::Error;
use crate::net::{Network, Place};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::thread;

/// Threads that forward connections until the engine exits.
pub(super) struct Forwarder;

impl Forwarder {
    /// Listens at `place` on the ports of these services.
    ///
    /// # Errors
    /// `no-reach`: a listener or a thread cannot be created.
    pub fn open(
        network: &mut Network,
        engine: &Path,
        place: &Place,
        services: &[SocketAddr],
    ) -> Result<Option<Forwarder>, Error> {
        for service in services {
            let at = SocketAddr::new(place.address, service.port());
            let failed = |error: io::Error| {
                let message = format!("{service} cannot be made reachable at {at}: {error}");
                Error::new("no-reach", message, "choose another port for the service or for --server")
            };
            let listener = listener(network, engine, place, at).map_err(failed)?;
            let service = *service;
            let accept = move || {
                for client in listener.incoming().flatten() {
                    // If the thread cannot be created, the client's connection is closed.
                    let _ = thread::Builder::new().spawn(move || forward(&client, service));
                }
            };
            thread::Builder::new().name(format!("reach {service}")).spawn(accept).map_err(failed)?;
        }
        Ok((!services.is_empty()).then_some(Forwarder))
    }
}

fn listener(network: &mut Network, engine: &Path, place: &Place, at: SocketAddr) -> io::Result<TcpListener> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let words = [engine.as_os_str().to_owned(), OsString::from("listen"), at.to_string().into()];
    let mut child = network
        .spawn_with(&place.name, &words, |command| {
            command.stdin(theirs).stdout(Stdio::null());
        })
        .map_err(|error| io::Error::other(error.message))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(&ours, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC).map(|_| ());
    let handed = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    let mut text = String::new();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut text));
    child.wait()?;
    received?;
    handed.map(TcpListener::from).ok_or_else(|| io::Error::other(text.trim().to_owned()))
}

/// Passes a listening socket over standard input, which must be a Unix socket.
///
/// # Errors
/// If the socket cannot be created or passed.
pub fn listen(at: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    let sockets = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(io::stdin(), &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Copies data in both directions until both have ended.
fn forward(client: &TcpStream, service: SocketAddr) {
    let Ok(server) = TcpStream::connect(service) else { return };
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        // An error is handled like the end of the data.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    };
    thread::scope(|scope| {
        let _ = thread::Builder::new().spawn_scoped(scope, || copy(client, &server));
        copy(&server, client);
    });
}
