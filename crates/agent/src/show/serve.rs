//! Answers several clients concurrently on one thread, with one request and one answer per connection.
//!
//! ```text
//!  accepted ─► asking ─► answered ─► leaving ─► closed
//! ```
//!
//! Each state has a deadline. Bytes after the request are read and dropped, since closing the socket with unread bytes
//! would reset the connection and lose the answer. If all slots are in use, a new client replaces another one.

use crate::log;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of concurrent connections. Each takes a file descriptor, which the records need as well.
const MAX_CLIENTS: usize = 32;

/// Maximum number of clients that are accepted before existing clients are served again.
const MAX_ACCEPTED: usize = 16;

#[derive(Clone, Copy)]
struct Timeouts {
    /// Time from the accept to the end of the request.
    asking: Duration,
    /// Time to send the answer.
    answered: Duration,
    /// Time after the answer until the client closes.
    leaving: Duration,
}

const TIMEOUTS: Timeouts =
    Timeouts { asking: Duration::from_secs(2), answered: Duration::from_secs(10), leaving: Duration::from_millis(500) };

const CHECK: Duration = Duration::from_secs(1);

/// Pause if file descriptors or memory are short.
const RETRY: Duration = Duration::from_millis(200);

/// A listening socket, and the answers to its clients.
pub trait Endpoint: Send {
    /// Returns the listening socket, which is non-blocking.
    fn listener(&self) -> BorrowedFd<'_>;

    /// Returns whether this client may send requests.
    fn admits(&self, client: &OwnedFd) -> bool;

    /// Returns the answer to a request; `None` while it is incomplete. With `is_over`, the client sends no more bytes.
    fn answer(&self, request: &[u8], is_over: bool) -> Option<Vec<u8>>;

    /// Called regularly, to replace a listening socket that clients can no longer reach.
    fn check(&mut self) {}
}

/// Serves an endpoint on a separate thread until the process exits.
///
/// # Errors
/// If the thread cannot be created.
pub fn start(name: &str, endpoint: impl Endpoint + 'static) -> io::Result<()> {
    start_with(name, endpoint, TIMEOUTS)
}

fn start_with(name: &str, endpoint: impl Endpoint + 'static, timeouts: Timeouts) -> io::Result<()> {
    let mut server = Server { endpoint, timeouts, clients: Vec::with_capacity(MAX_CLIENTS) };
    thread::Builder::new().name(name.to_owned()).spawn(move || server.serve()).map(drop)
}

struct Server<E> {
    endpoint: E,
    timeouts: Timeouts,
    /// Connected clients, the oldest first.
    clients: Vec<Client>,
}

struct Client {
    socket: OwnedFd,
    state: State,
    deadline: Instant,
}

enum State {
    /// Receiving the request, which is incomplete.
    Asking(Vec<u8>),
    /// Sending the answer, of which this number of bytes is sent.
    Answered(Vec<u8>, usize),
    /// Waiting for the client to close.
    Leaving,
    Closed,
}

impl State {
    /// Of the clients with the smallest rank, the oldest is replaced first.
    fn rank(&self) -> u8 {
        match self {
            State::Closed | State::Leaving => 0,
            State::Asking(_) => 1,
            State::Answered(..) => 2,
        }
    }
}

impl<E: Endpoint> Server<E> {
    fn serve(&mut self) {
        let mut checked = Instant::now();
        loop {
            if checked.elapsed() >= CHECK {
                checked = Instant::now();
                self.endpoint.check();
            }
            let ready = match self.wait(checked + CHECK) {
                Ok(ready) => ready,
                Err(error) => {
                    log::debug(&format!("cannot wait for clients: {error}"));
                    thread::sleep(RETRY);
                    continue;
                }
            };
            // Complete requests are answered before a new client takes their slot.
            for (client, is_ready) in self.clients.iter_mut().zip(&ready[1..]) {
                if *is_ready {
                    client.serve(&self.endpoint, &self.timeouts);
                }
                if client.deadline <= Instant::now() {
                    client.state = State::Closed;
                }
            }
            self.clients.retain(|client| !matches!(client.state, State::Closed));
            if ready[0] {
                self.accept();
            }
        }
    }

    /// Returns whether the listening socket is ready, and the same for the clients.
    fn wait(&self, until: Instant) -> io::Result<Vec<bool>> {
        let listener = self.endpoint.listener();
        let mut files = vec![PollFd::from_borrowed_fd(listener, PollFlags::IN)];
        files.extend(self.clients.iter().map(|client| {
            let flags = if matches!(client.state, State::Answered(..)) { PollFlags::OUT } else { PollFlags::IN };
            PollFd::from_borrowed_fd(client.socket.as_fd(), flags)
        }));
        let next = self.clients.iter().map(|client| client.deadline).chain([until]).min().unwrap_or(until);
        let timeout = next.saturating_duration_since(Instant::now());
        // Has nanosecond precision, so that the deadline has passed when poll returns.
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(files.iter().map(|file| !file.revents().is_empty()).collect()),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTED {
            match accept_with(self.endpoint.listener(), SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) if self.endpoint.admits(&socket) => self.add(socket),
                Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    log::debug(&format!("cannot accept a client: {error}"));
                    if !self.drop_one() {
                        thread::sleep(RETRY);
                    }
                    return;
                }
            }
        }
    }

    fn add(&mut self, socket: OwnedFd) {
        if self.clients.len() >= MAX_CLIENTS {
            self.drop_one();
        }
        let deadline = Instant::now() + self.timeouts.asking;
        self.clients.push(Client { socket, state: State::Asking(Vec::new()), deadline });
    }

    /// Drops the client that is replaced first; returns whether there was one.
    fn drop_one(&mut self) -> bool {
        let first = (0..self.clients.len()).min_by_key(|&number| self.clients[number].state.rank());
        first.map(|number| self.clients.remove(number)).is_some()
    }
}

impl Client {
    /// Receives or sends what is possible without blocking. An error closes the connection.
    fn serve(&mut self, endpoint: &impl Endpoint, timeouts: &Timeouts) {
        if let Err(error) = self.advance(endpoint, timeouts) {
            if error != Errno::AGAIN && error != Errno::INTR {
                self.state = State::Closed;
            }
        }
    }

    fn advance(&mut self, endpoint: &impl Endpoint, timeouts: &Timeouts) -> Result<(), Errno> {
        let mut chunk = [0; 4096];
        match &mut self.state {
            State::Asking(request) => {
                let (_, count) = recv(&self.socket, &mut chunk, RecvFlags::empty())?;
                request.extend_from_slice(&chunk[..count]);
                match endpoint.answer(request, count == 0) {
                    Some(answer) => {
                        self.deadline = Instant::now() + timeouts.answered;
                        self.state = State::Answered(answer, 0);
                        self.advance(endpoint, timeouts)
                    }
                    None if count == 0 => {
                        self.state = State::Closed;
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
            State::Answered(answer, sent) => {
                while *sent < answer.len() {
                    *sent += send(&self.socket, &answer[*sent..], SendFlags::NOSIGNAL)?;
                }
                let _ = shutdown(&self.socket, Shutdown::Write);
                self.deadline = Instant::now() + timeouts.leaving;
                self.state = State::Leaving;
                Ok(())
            }
            State::Leaving => {
                if recv(&self.socket, &mut chunk, RecvFlags::empty())?.1 == 0 {
                    self.state = State::Closed;
                }
                Ok(())
            }
            State::Closed => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
