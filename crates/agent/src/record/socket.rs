//! The UNIX socket on which a recording agent answers, and the client's side of it. One JSON line asks, one answers.
//!
//! The file is root's, with mode 0600. Between its creation and that mode lies an instant, and somebody may run the agent
//! with a strange umask, so the other end's user is looked at as well.

use super::snapshot::{Observable, Request, Tuning};
use super::sorting::{MOST, Selection};
use crate::problem::Problem;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Where an agent answers unless told otherwise.
pub const DEFAULT: &str = "/run/thalweg/agent.sock";

/// How long the agent waits for a client to ask, and to take the answer: one that hangs keeps others waiting.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);

/// How long a client waits: an agent on a busy machine looks at 100,000 connections.
const AGENT_PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait when no client can be accepted, for want of file descriptors.
const RETRY: Duration = Duration::from_millis(200);

/// No request is longer.
const LONGEST_REQUEST: u64 = 4096;

/// A socket that is answered on, until this is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    inode: u64,
}

impl Server {
    /// Begins to answer, on a thread of its own. What a killed agent has left at the path is replaced.
    ///
    /// # Errors
    /// If another agent answers there, something else is there, or the socket cannot be made.
    pub fn start(path: &Path, observed: Arc<dyn Observable>) -> Result<Server, Problem> {
        let failed = |error: io::Error| {
            Problem::failed(
                "socket",
                &path.display().to_string(),
                format!("the socket cannot be made: {error}"),
                "a place where root may make one",
                &format!("--socket {DEFAULT}"),
            )
        };
        make_way(path)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let inode = fs::symlink_metadata(path).map_err(failed)?.ino();
        let server = Server { path: path.to_owned(), inode };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let serve = move || serve(&listener, &*observed);
        thread::Builder::new().name("socket".to_owned()).spawn(serve).map_err(failed)?;
        Ok(server)
    }
}

impl Drop for Server {
    /// Takes the file away, unless it is another's by now.
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket of an agent that was killed.
fn make_way(path: &Path) -> Result<(), Problem> {
    let place = path.display().to_string();
    let Ok(file) = fs::symlink_metadata(path) else { return Ok(()) };
    if !file.file_type().is_socket() {
        return Err(Problem::refused(
            "not-a-socket",
            &place,
            "something that is not a socket",
            "nothing, or the socket of an earlier agent",
            &format!("choose another path: --socket {DEFAULT}"),
        ));
    }
    // A socket that nobody listens on refuses; whatever else happens, somebody is there.
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(|error| {
            let found = format!("the socket of an agent that was killed, and it cannot be removed: {error}");
            Problem::failed("socket", &place, found, "nothing in the way", &format!("sudo rm {place}"))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        _ => Err(Problem::failed(
            "already-recording",
            &place,
            "an agent that answers there",
            "no other agent on this machine",
            "look at it with `sudo thalweg-agent status`; end it first",
        )),
    }
}

fn serve(listener: &UnixListener, observed: &dyn Observable) {
    for stream in listener.incoming() {
        match stream {
            Ok(stream) => {
                // A client that went away, or never asked, is no matter.
                let _ = answer(&stream, observed);
            }
            Err(_) => thread::sleep(RETRY),
        }
    }
}

fn answer(mut stream: &UnixStream, observed: &dyn Observable) -> io::Result<()> {
    let user = rustix::net::sockopt::socket_peercred(stream)?.uid;
    if !user.is_root() && user != rustix::process::geteuid() {
        return Ok(());
    }
    stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line)?;
    let mut answer = match serde_json::from_str(&line) {
        Ok(Request::Status) => serde_json::to_string(&observed.status())?,
        Ok(Request::Open { sort, limit }) => {
            serde_json::to_string(&observed.open(&Selection { sort, limit: limit.min(MOST) }))?
        }
        Ok(Request::Tuning { limit }) => tuned(observed, |tuning| tuning.status(limit.min(MOST))),
        Ok(Request::Explain { prefix }) => tuned(observed, |tuning| tuning.explain(&prefix)),
        Err(error) => json!({ "error": error.to_string() }).to_string(),
    };
    answer.push('\n');
    stream.write_all(answer.as_bytes())
}

/// An answer of an agent that chooses; of another one, that it does not.
fn tuned(observed: &dyn Observable, answer: impl FnOnce(&dyn Tuning) -> Value) -> String {
    observed.tuning().map_or_else(|| json!({ "tuning": false }), |tuning| answer(&*tuning)).to_string()
}

/// Asks the agent on a socket.
///
/// # Errors
/// If none answers there, it may not be asked by this user, or it does not know the question.
pub fn ask(path: &Path, request: &Request) -> Result<Value, Problem> {
    let line = exchange(path, request).map_err(|error| unanswered(path, &error))?;
    let answer: Value = serde_json::from_str(&line)
        .map_err(|error| unanswered(path, &io::Error::new(ErrorKind::InvalidData, error)))?;
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(Problem::failed(
            "unknown-request",
            &path.display().to_string(),
            format!("an agent that does not understand the question: {error}"),
            "an agent of the same version",
            "restart the one that records: sudo systemctl restart thalweg-agent",
        )),
    }
}

/// An answer as what it should be.
///
/// # Errors
/// If it is something else.
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
        ErrorKind::PermissionDenied => {
            Problem::missing("no-right", &place, "a socket for root only", "root", "put sudo before the command")
        }
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Problem::failed(
            "not-recording",
            &place,
            "no agent that answers",
            "a running `thalweg-agent record`",
            "sudo systemctl start thalweg-agent, or: sudo thalweg-agent record",
        ),
        _ => Problem::failed(
            "no-answer",
            &place,
            format!("no answer that can be read: {error}"),
            "an agent that answers within 30 s",
            "look at what it says: journalctl --unit thalweg-agent",
        ),
    }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
