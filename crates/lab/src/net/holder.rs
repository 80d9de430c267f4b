//! The process whose namespaces hold a network, and commands inside them.
//!
//! ```text
//!  engine ── stdin ──► unshare [--user --map-root-user] --net --mount cat        the holder
//!                        └ its /run/netns/{router,receiver,sender,…}             named namespaces that only it sees
//! ```
//!
//! The holder exits at the end of its standard input. Namespaces end with their last process, so nothing of the network
//! is left after the engine has exited, for whatever reason. Commands enter before they start, as `nsenter` does; `ip
//! -n` and `ip netns exec` would mount `/sys` again, which an ordinary user may not do everywhere.
//!
//! Root needs no user namespace, and avoids it: a process that is root only in a user namespace may not use SCHED_FIFO.
//! Where root is refused (containers), a user namespace is tried.
//!
//! Source: unshare(1), nsenter(1), namespaces(7), user_namespaces(7), ip-netns(8).

use crate::error::Error;
use crate::net::refusal;
use crate::net::sys::{self, Act, Answer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for making or ending namespaces. Both take milliseconds; the rest is a margin for busy and nested machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Priority under SCHED_FIFO: between the kernel's own threads.
pub(crate) const FIFO_PRIORITY: i32 = 50;

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
                let mut message = String::new();
                if let Some(mut stderr) = holder.child.stderr.take() {
                    let _ = stderr.read_to_string(&mut message);
                }
                if message.trim().is_empty() { Err(error) } else { Err(io::Error::other(message.trim().to_owned())) }
            }
        }
    }

    fn echo(&mut self) -> io::Result<()> {
        let closed = || io::Error::other("`unshare` ended without an answer");
        self.child.stdin.as_mut().ok_or_else(closed)?.write_all(b"\n").map_err(|_| closed())?;
        let stdout = self.child.stdout.as_mut().ok_or_else(closed)?;
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        if poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::Error::other("`unshare` did not answer in time"));
        }
        stdout.read_exact(&mut [0]).map_err(|_| closed())
    }

    /// A command inside: in one of the named namespaces, or in the holder's own.
    ///
    /// # Errors
    /// The namespace is not there.
    pub fn command(&self, namespace: Option<&str>, program: impl AsRef<OsStr>) -> io::Result<Command> {
        self.command_with(namespace, program, None)
    }

    /// The same under SCHED_FIFO, at [`FIFO_PRIORITY`], which children inherit.
    ///
    /// # Errors
    /// The namespace is not there.
    pub fn realtime_command(&self, namespace: Option<&str>, program: impl AsRef<OsStr>) -> io::Result<Command> {
        self.command_with(namespace, program, Some(FIFO_PRIORITY))
    }

    fn command_with(
        &self,
        namespace: Option<&str>,
        program: impl AsRef<OsStr>,
        fifo_priority: Option<i32>,
    ) -> io::Result<Command> {
        let mut namespaces = self.namespaces()?;
        namespaces.push(self.network(namespace)?);
        let mut command = Command::new(program);
        sys::enter_first(&mut command, namespaces, fifo_priority);
        alone(&mut command);
        Ok(command)
    }

    /// Returns a command that runs in a named network namespace, but keeps the file system, the environment, the folder
    /// and the process group of this process.
    ///
    /// # Errors
    /// The namespace does not exist.
    pub fn program(&self, namespace: &str, program: &OsStr) -> io::Result<Command> {
        let mut namespaces = Vec::new();
        if self.has_user_namespace {
            namespaces.push(File::open(self.own("user"))?);
        }
        namespaces.push(self.network(Some(namespace))?);
        let mut command = Command::new(program);
        sys::enter_first(&mut command, namespaces, None);
        Ok(command)
    }

    /// Does all this inside, beginning in the holder's own network namespace.
    ///
    /// # Errors
    /// The system refuses a child, or the namespaces.
    pub fn act(&self, acts: Vec<Act>) -> io::Result<Vec<Answer>> {
        let mut namespaces = self.namespaces()?;
        namespaces.push(self.network(None)?);
        sys::act(namespaces, acts)
    }

    /// A network namespace to enter: a named one, or the holder's own.
    ///
    /// # Errors
    /// It is not there.
    pub fn network(&self, namespace: Option<&str>) -> io::Result<File> {
        File::open(namespace.map_or_else(|| self.own("net"), |name| self.path(name)))
    }

    /// The holder's namespaces except the network. The user namespace comes first: entering it gives the right to enter
    /// the others.
    fn namespaces(&self) -> io::Result<Vec<File>> {
        let kinds = if self.has_user_namespace { &["user", "mnt"][..] } else { &["mnt"] };
        kinds.iter().map(|kind| File::open(self.own(kind))).collect()
    }

    fn own(&self, kind: &str) -> String {
        format!("/proc/{}/ns/{kind}", self.pid())
    }

    /// Process id: ours to use until [`Holder::end`] has waited for it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Path of a named namespace's file, from outside.
    fn path(&self, namespace: &str) -> String {
        format!("/proc/{}/root/run/netns/{namespace}", self.pid())
    }

    /// Returns the identity of a network namespace while it exists: its inode. No name: the holder's own.
    pub fn identity(&self, namespace: Option<&str>) -> io::Result<u64> {
        Ok(self.network(namespace)?.metadata()?.ino())
    }

    /// Terminates the process, first with SIGTERM, and waits for it.
    pub fn end(&mut self) {
        drop(self.child.stdin.take());
        if wait_for(&mut self.child, PATIENCE).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.end();
    }
}

/// Prepares a command as all of ours are: out of reach of the terminal's Ctrl-C, which is the engine's to handle, and
/// with the folders of system tools in its search path, which ordinary users of Debian do not have.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0).env("PATH", search_path()).env("LC_ALL", "C")
}

/// Exit status of a process; `None` if it is still running after `patience`.
pub(crate) fn wait_for(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    /// Between two checks.
    const PAUSE: Duration = Duration::from_millis(1);
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(PAUSE),
            _ => return None,
        }
    }
}

/// The search path of the machine that a guest runs on.
static MACHINE_PATH: OnceLock<String> = OnceLock::new();

/// Sets the search path of a process that has none of its own, such as the first one of a guest.
pub(crate) fn set_search_path(path: String) {
    let _ = MACHINE_PATH.set(path);
}

/// Our search path and the folders where system tools are.
pub(crate) fn search_path() -> String {
    let own = || std::env::var("PATH").ok();
    let path = MACHINE_PATH.get().cloned().or_else(own).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    format!("{path}:/usr/sbin:/sbin")
}
