//! The process whose namespaces hold a network, and commands inside them.
//!
//! ```text
//!  engine ── stdin ──► unshare [--user --map-root-user] --net --mount cat        the holder
//!                        └ its /run/netns/{router,receiver,sender,…}             namespaces with names, visible to it alone
//! ```
//!
//! The holder ends when its standard input does. Namespaces end with the last process in them, so nothing is left of the
//! network once the engine is gone, however it went. Commands enter with `nsenter`; `ip -n` and `ip netns exec` would mount
//! `/sys` anew, which an ordinary user may not do everywhere.
//!
//! Root needs no user namespace, and is better off without: a process that is root in a user namespace only may not ask
//! for SCHED_FIFO. Where root is refused (containers), a user namespace is tried.
//!
//! Source: unshare(1), nsenter(1), namespaces(7), user_namespaces(7), ip-netns(8).

use crate::error::Error;
use crate::net::refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long making or ending namespaces may take before we give up. Both take milliseconds; the rest is for machines
/// that are busy or that run inside others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A process that keeps namespaces alive; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
    has_user_namespace: bool,
}

impl Holder {
    /// Makes a network namespace and a mount namespace, as root of them.
    ///
    /// # Errors
    /// `no-namespaces` or `no-tool`, with what has to be changed on this machine.
    pub fn start() -> Result<Holder, Error> {
        if geteuid().is_root() {
            if let Ok(holder) = Holder::start_with(&["--net", "--mount"], false) {
                return Ok(holder);
            }
        }
        Holder::start_with(&["--user", "--map-root-user", "--net", "--mount"], true)
            .map_err(|error| refusal::explain(&error))
    }

    fn start_with(options: &[&str], has_user_namespace: bool) -> io::Result<Holder> {
        let mut command = Command::new("unshare");
        command.args(options).arg("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = alone(&mut command).spawn()?;
        let mut holder = Holder { child, has_user_namespace };
        // `cat` runs in the new namespaces, so its echo says that they are there.
        match holder.echo() {
            Ok(()) => Ok(holder),
            Err(error) => {
                holder.end();
                let mut said = String::new();
                if let Some(mut stderr) = holder.child.stderr.take() {
                    let _ = stderr.read_to_string(&mut said);
                }
                if said.trim().is_empty() { Err(error) } else { Err(io::Error::other(said.trim().to_owned())) }
            }
        }
    }

    fn echo(&mut self) -> io::Result<()> {
        let gone = || io::Error::other("`unshare` ended without a word");
        self.child.stdin.as_mut().ok_or_else(gone)?.write_all(b"\n").map_err(|_| gone())?;
        let stdout = self.child.stdout.as_mut().ok_or_else(gone)?;
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        if poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::Error::other("`unshare` did not answer in time"));
        }
        stdout.read_exact(&mut [0]).map_err(|_| gone())
    }

    /// A command inside: in one of the named namespaces, or in the holder's own.
    pub fn command(&self, namespace: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        self.enter(&mut command, namespace);
        command.arg(program);
        alone(&mut command);
        command
    }

    /// The same under SCHED_FIFO at priority 50, which children inherit: `chrt` comes first because priorities are
    /// refused to those who have entered a user namespace.
    pub fn realtime_command(&self, namespace: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "50", "nsenter"]);
        self.enter(&mut command, namespace);
        command.arg(program);
        alone(&mut command);
        command
    }

    fn enter(&self, command: &mut Command, namespace: Option<&str>) {
        command.arg("--target").arg(self.pid().to_string());
        if self.has_user_namespace {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--mount");
        match namespace {
            Some(name) => command.arg(format!("--net={}", self.path(name))),
            None => command.arg("--net"),
        };
        command.arg("--");
    }

    /// Its process id: ours to use until [`Holder::end`] has waited for it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether its user namespace is its own.
    pub fn has_user_namespace(&self) -> bool {
        self.has_user_namespace
    }

    /// File that stands for a named namespace, seen from outside.
    fn path(&self, namespace: &str) -> String {
        format!("/proc/{}/root/run/netns/{namespace}", self.pid())
    }

    /// What tells the network namespace apart from others while it exists: its inode. No name: the holder's own.
    pub fn identity(&self, namespace: Option<&str>) -> io::Result<u64> {
        let path = namespace.map_or_else(|| format!("/proc/{}/ns/net", self.pid()), |name| self.path(name));
        Ok(fs::metadata(path)?.ino())
    }

    /// Ends the process, politely first, and waits for it.
    pub fn end(&mut self) {
        drop(self.child.stdin.take());
        let give_up = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > give_up {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.end();
    }
}

/// Prepares a command as all of ours are: out of reach of the terminal's Ctrl-C, which is the engine's to handle, and with
/// the folders of system tools in its search path, which ordinary users of Debian do not have.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0).env("PATH", search_path()).env("LC_ALL", "C")
}

/// Our search path and the folders where system tools are.
pub(crate) fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    format!("{path}:/usr/sbin:/sbin")
}
