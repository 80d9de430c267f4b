//! Starts, monitors and terminates the programs of a session.

use super::reach::Forwarder;
use super::reaper::Reaper;
use super::{EXIT_CODE, LEFT, Session};
use crate::error::Error;
use crate::net::holder::wait_for;
use crate::net::{Network, Place, not_started};
use crate::program::sockets;
use crate::run::SESSION_PORT;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LISTENS: Duration = Duration::from_secs(3);

const ENDS: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(10);

/// Environment variable for the engine, which is removed for programs.
const COMMAND: &str = "THALWEG_COMMAND";

/// Maximum number of bytes of a server's output in an error.
const SHOWN: usize = 300;

/// Running programs. Dropping this terminates them.
pub(crate) struct Programs {
    command: Child,
    server: Option<Server>,
    _forwarder: Option<Forwarder>,
    reaper: Reaper,
}

impl Programs {
    /// Opens the forwarder, starts the server, waits until it listens, and starts the command.
    ///
    /// # Errors
    /// If one of these steps fails, or the reaper cannot be started.
    pub fn start(network: &mut Network, session: Session<'_>, engine: &Path) -> Result<Programs, Error> {
        let order = session.order;
        let (sender, receiver) = (&network.senders()[0], network.receiver());
        let (here, there) = if order.is_at_receiver { (receiver, sender) } else { (sender, receiver) };
        let (here, there) = (here.clone(), there.clone());
        let reaper = Reaper::start(engine, network)?;
        let forwarder = Forwarder::open(network, engine, &there, &order.reach)?;
        let mut environment = order.environment.clone();
        for (name, place) in [("THALWEG_SERVER", &there), ("THALWEG_CLIENT", &here)] {
            environment.push((name.into(), place.address.to_string().into()));
        }
        let server = order.server.as_ref().map(|line| {
            note(network, &there, ["sh", "-c"].map(OsStr::new).into_iter().chain([line.as_os_str()]));
            let others: Vec<u16> = order.reach.iter().map(SocketAddr::port).chain([SESSION_PORT]).collect();
            Server::start(network, &there, line, &environment, &order.server_output, &others)
        });
        let server = server.transpose()?;
        let Some((program, arguments)) = order.command.split_first() else {
            return Err(Error::new("no-command", "there is no command to run", "name a program"));
        };
        note(network, &here, order.command.iter().map(OsString::as_os_str));
        let started = network.program(&here.name, program).and_then(|mut command| {
            if let Some(detached) = &order.detached {
                let [stdout, stderr] = [0, 1].map(|file| File::options().append(true).open(&detached.output[file]));
                command.current_dir(&detached.folder).stdin(Stdio::null()).stdout(stdout?).stderr(stderr?);
            }
            command.args(arguments).envs(environment).env_remove(COMMAND).spawn()
        });
        let command = started.map_err(|error| {
            let message = format!("cannot run `{}`: {error}", Path::new(program).display());
            Error::new("no-command", message, "enter the name of an installed program, or its path")
        })?;
        Ok(Programs { command, server, _forwarder: forwarder, reaper })
    }

    /// Returns the exit status of the command; `None` while it runs.
    ///
    /// # Errors
    /// If the system does not report the status.
    pub fn poll(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.command.try_wait().map_err(|error| {
            Error::new("no-process", format!("the status of the command is unknown: {error}"), "please report it")
        })
    }

    /// Terminates the processes in the network except those in `spared`. Returns values to record.
    ///
    /// # Errors
    /// `leftovers`: a process does not exit.
    pub fn end(&mut self, status: ExitStatus, spared: &[u32]) -> Result<BTreeMap<String, f64>, Error> {
        self.server.take().into_iter().for_each(Server::end);
        let ended = self.reaper.end_all_but(spared)?;
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        let measured = [(EXIT_CODE, f64::from(code)), (LEFT, ended as f64)];
        Ok(measured.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Drops the value without terminating processes, because hosts may still work.
    pub fn dismiss(mut self) {
        self.reaper.dismiss();
    }

    /// Terminates the processes in the network except those in `spared`.
    ///
    /// # Errors
    /// `leftovers`: a process does not exit.
    pub fn interrupt(&mut self, spared: &[u32]) -> Result<(), Error> {
        self.reaper.end_all_but(spared).map(drop)
    }
}

/// Logs a program as a comment, because it is not part of the network.
fn note<'a>(network: &mut Network, place: &Place, words: impl Iterator<Item = &'a OsStr>) {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().replace('\n', " ")).collect();
    network.note(&format!("# nsenter --net=/run/netns/{} {}", place.name, words.join(" ")));
}

struct Server(Child);

impl Server {
    fn start(
        network: &Network,
        place: &Place,
        line: &OsStr,
        environment: &[(OsString, OsString)],
        output: &Path,
        other_ports: &[u16],
    ) -> Result<Server, Error> {
        let opened = File::create(output).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = opened.map_err(|error| {
            let message = format!("{} cannot be written: {error}", output.display());
            Error::new("no-server", message, "check whether the disk is full: df -h")
        })?;
        let started = network.program(&place.name, OsStr::new("sh")).and_then(|mut command| {
            // In a separate process group, so that Ctrl-C does not terminate it.
            command.arg("-c").arg(line).envs(environment.iter().cloned()).env_remove(COMMAND);
            command.process_group(0);
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn()
        });
        let mut server = Server(started.map_err(|error| not_started("sh", &error))?);
        server.wait_until_it_listens(line, output, other_ports)?;
        Ok(server)
    }

    /// Waits until a socket listens at the server's end, the server exits, or the timeout has passed.
    fn wait_until_it_listens(&mut self, line: &OsStr, output: &Path, other_ports: &[u16]) -> Result<(), Error> {
        let until = Instant::now() + LISTENS;
        while Instant::now() < until && !is_listening(self.0.id(), other_ports) {
            if let Ok(Some(status)) = self.0.try_wait() {
                if status.success() {
                    return Ok(());
                }
                let text = fs::read(output).unwrap_or_default();
                let text = String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN)..]).trim().to_owned();
                let message = format!("the server `{}` exited ({status}): {text}", Path::new(line).display());
                return Err(Error::new(
                    "no-server",
                    message,
                    "test it alone first; it must listen at the address in THALWEG_SERVER",
                ));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn end(mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::TERM);
        let _ = wait_for(&mut self.0, ENDS);
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.try_wait();
    }
}

/// Returns whether a socket in the network namespace of a process waits for connections or datagrams, except at
/// `other_ports`.
fn is_listening(pid: u32, other_ports: &[u16]) -> bool {
    /// Socket states in /proc/net: TCP_LISTEN, and TCP_CLOSE, the state of UDP sockets that are not connected.
    const WAITING: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    WAITING.iter().any(|(table, state)| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        sockets(&text).any(|(port, at)| at == *state && !other_ports.contains(&port))
    })
}
