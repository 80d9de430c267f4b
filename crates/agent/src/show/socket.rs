//! The UNIX socket of a recording agent, and its client. A request and its answer are one JSON line each.
//!
//! Only the agent's user and root may connect.

use super::observable::{Observable, Request, Tuning};
use super::serve::{self, Endpoint};
use super::sorting::{MAX_ROWS, Selection};
use crate::log;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thalweg_store::Problem;

/// Default path of the control socket.
pub const DEFAULT: &str = "/run/thalweg/agent.sock";

/// Timeout of a client; the agent may have to scan many connections.
const AGENT_PATIENCE: Duration = Duration::from_secs(30);

const BACKLOG: i32 = 128;

const MAX_REQUEST_BYTES: usize = 4096;

/// The control socket; dropping it removes the file.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    own: Arc<Own>,
}

/// Inode of this agent's socket file, which another file may have replaced; `None` once the [`Server`] is dropped.
type Own = Mutex<Option<u64>>;

fn locked(own: &Own) -> MutexGuard<'_, Option<u64>> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Starts to serve requests on a separate thread. Replaces the socket file of a killed agent.
    ///
    /// # Errors
    /// If the path is in use, or the socket cannot be created.
    pub fn start(path: &Path, observed: Arc<dyn Observable>) -> Result<Server, Problem> {
        let failed = |error: io::Error| {
            Problem::failed(
                "socket",
                &path.display().to_string(),
                format!("a socket that cannot be created: {error}"),
                "a path where root may create a socket",
                &format!("--socket {DEFAULT}"),
            )
        };
        make_way(path)?;
        let (listener, number) = bind(path).map_err(failed)?;
        let own = Arc::new(Mutex::new(Some(number)));
        let server = Server { path: path.to_owned(), own: Arc::clone(&own) };
        let questions = Questions { listener, path: path.to_owned(), own, observed, trouble: None };
        serve::start("socket", questions).map_err(failed)?;
        Ok(server)
    }
}

impl Drop for Server {
    /// Removes the file, unless another process has replaced it.
    fn drop(&mut self) {
        let mut own = locked(&self.own);
        if own.take() == inode(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds a new socket to a path, and returns it with its inode.
fn bind(path: &Path) -> io::Result<(OwnedFd, u64)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // `bind` creates the file with the mode of the socket, so other users can never connect.
    fchmod(&listener, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&listener, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok((listener, fs::symlink_metadata(path)?.ino()))
}

/// Returns the inode at a path, without following a symbolic link.
fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|file| file.ino())
}

struct Questions {
    listener: OwnedFd,
    path: PathBuf,
    own: Arc<Own>,
    observed: Arc<dyn Observable>,
    /// The last logged reason why the socket cannot be created again.
    trouble: Option<String>,
}

impl Endpoint for Questions {
    fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn admits(&self, client: &OwnedFd) -> bool {
        let user = rustix::net::sockopt::socket_peercred(client).map(|peer| peer.uid);
        user.is_ok_and(|user| user.is_root() || user == rustix::process::geteuid())
    }

    fn answer(&self, request: &[u8], is_over: bool) -> Option<Vec<u8>> {
        let end = request.iter().position(|byte| *byte == b'\n');
        if end.is_none() && !is_over && request.len() < MAX_REQUEST_BYTES {
            return None;
        }
        let mut answer = reply(&*self.observed, &request[..end.unwrap_or(request.len())]);
        answer.push('\n');
        Some(answer.into_bytes())
    }

    fn check(&mut self) {
        let mut own = locked(&self.own);
        if own.is_none() || *own == inode(&self.path) {
            self.trouble = None;
            return;
        }
        let place = self.path.display().to_string();
        let result = make_way(&self.path).map_err(|problem| problem.found).and_then(|()| {
            let (listener, number) = bind(&self.path).map_err(|error| error.to_string())?;
            self.listener = listener;
            *own = Some(number);
            Ok(())
        });
        match result {
            Ok(()) => log::warning(&format!("{place}: the socket had been removed or replaced; it was created again")),
            Err(why) if self.trouble.as_ref() != Some(&why) => {
                log::error(&format!(
                    "{place}: the socket has been removed or replaced, and cannot be created again: {why}"
                ));
                self.trouble = Some(why);
            }
            Err(_) => {}
        }
    }
}

/// Removes the socket file of a killed agent.
fn make_way(path: &Path) -> Result<(), Problem> {
    let place = path.display().to_string();
    let Ok(file) = fs::symlink_metadata(path) else { return Ok(()) };
    if !file.file_type().is_socket() {
        return Err(Problem::refused(
            "not-a-socket",
            &place,
            "a file that is not a socket",
            "no file, or the socket of an earlier agent",
            &format!("choose another path: --socket {DEFAULT}"),
        ));
    }
    // A socket without a listener refuses connections. Other results, except a missing file, count as a running agent.
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(|error| {
            let found = format!("the socket of a killed agent, which cannot be removed: {error}");
            Problem::failed("socket", &place, found, "no file at this path", &format!("sudo rm {place}"))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => Err(Problem::failed(
            "already-recording",
            &place,
            "a running agent",
            "a path that no other agent uses",
            "stop that agent first (`sudo thalweg-agent status` shows it), or choose another path: --socket PATH",
        )),
    }
}

/// Returns the answer to a request line.
pub fn reply(observed: &dyn Observable, line: &[u8]) -> String {
    let answered = match serde_json::from_slice(line) {
        Ok(Request::Status) => serde_json::to_string(&observed.status()),
        Ok(Request::Open { sort, limit }) => {
            serde_json::to_string(&observed.open(&Selection { sort, limit: limit.min(MAX_ROWS) }))
        }
        Ok(Request::Tuning { limit }) => Ok(tuned(observed, |tuning| tuning.status(limit.min(MAX_ROWS)))),
        Ok(Request::Explain { prefix }) => Ok(tuned(observed, |tuning| tuning.explain(&prefix))),
        Err(error) => Err(error),
    };
    answered.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string())
}

/// Returns the tuner's answer, or `{"tuning":false}` without a tuner.
fn tuned(observed: &dyn Observable, answer: impl FnOnce(&dyn Tuning) -> Value) -> String {
    observed.tuning().map_or_else(|| json!({ "tuning": false }), |tuning| answer(&*tuning)).to_string()
}

/// Sends a request to the agent on a socket.
///
/// # Errors
/// If no agent answers, this user lacks the permission, or the agent does not support the request.
pub fn ask(path: &Path, request: &Request) -> Result<Value, Problem> {
    let line = exchange(path, request).map_err(|error| unanswered(path, &error))?;
    let answer: Value = serde_json::from_str(&line)
        .map_err(|error| unanswered(path, &io::Error::new(ErrorKind::InvalidData, error)))?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(Problem::failed(
            "unknown-request",
            &path.display().to_string(),
            format!("an agent that does not support this request: {error}"),
            "an agent of the same version",
            "restart the running agent: sudo systemctl restart thalweg-agent",
        )),
    }
}

/// Parses an answer.
///
/// # Errors
/// If the answer is malformed.
pub fn understood<T: DeserializeOwned>(path: &Path, answer: Value) -> Result<T, Problem> {
    serde_json::from_value(answer).map_err(|error| unanswered(path, &io::Error::new(ErrorKind::InvalidData, error)))
}

fn exchange(path: &Path, request: &Request) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(AGENT_PATIENCE))?;
    stream.set_write_timeout(Some(AGENT_PATIENCE))?;
    let line = serde_json::to_string(request)?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn unanswered(path: &Path, error: &io::Error) -> Problem {
    let place = path.display().to_string();
    match error.kind() {
        ErrorKind::PermissionDenied => Problem::missing(
            "no-right",
            &place,
            "a socket that only root may use",
            "root",
            "put sudo before the command",
        ),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Problem::failed(
            "not-recording",
            &place,
            "no running agent",
            "a running `thalweg-agent record`",
            "sudo systemctl start thalweg-agent, or: sudo thalweg-agent record",
        ),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Problem::failed(
            "no-answer",
            &place,
            "no answer within 30 s",
            "an agent that answers",
            "read its log: journalctl --unit thalweg-agent",
        ),
        _ => Problem::failed(
            "no-answer",
            &place,
            format!("an unreadable answer: {error}"),
            "an answer from thalweg-agent",
            "read its log: journalctl --unit thalweg-agent",
        ),
    }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
