//! The holder process, whose namespaces contain a network, and commands that run inside them.
//!
//! ```text
//!  engine ── stdin ──► unshare [--user --map-root-user] --net --mount cat        the holder
//!                        └ its /run/netns/{router,receiver,sender,…}             named namespaces in its mounts
//! ```
//!
//! The holder exits at the end of its standard input. Namespaces end with their last process, so the network ends when
//! the engine and the processes in the network have exited, for any reason. Commands enter the namespaces before they
//! start, as with `nsenter`. `ip -n` and `ip netns exec` are not used: they mount `/sys` again, which an unprivileged
//! user may not do everywhere.
//!
//! For root, a user namespace is tried only if root may not create namespaces otherwise (as in containers): root rights
//! in a user namespace do not permit SCHED_FIFO.
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

/// Timeout for creating or ending namespaces.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Priority under SCHED_FIFO.
pub(crate) const FIFO_PRIORITY: i32 = 50;

/// A process that keeps namespaces alive; dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Holder {
    child: Child,
    has_user_namespace: bool,
}

impl Holder {
    /// Creates a network namespace and a mount namespace with root rights in them.
    ///
    /// # Errors
    /// `no-namespaces`, `no-tool`, or the code of an exhausted resource.
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
        // `cat` runs in the new namespaces, so its echo shows that they exist.
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
        let closed = || io::Error::other("`unshare` exited without an answer");
        self.child.stdin.as_mut().ok_or_else(closed)?.write_all(b"\n").map_err(|_| closed())?;
        let stdout = self.child.stdout.as_mut().ok_or_else(closed)?;
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        if poll(&mut [PollFd::new(stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::Error::other("`unshare` did not answer in time"));
        }
        stdout.read_exact(&mut [0]).map_err(|_| closed())
    }

    /// Returns a command that runs in one of the named namespaces, or in the holder's own.
    ///
    /// # Errors
    /// If the namespace does not exist.
    pub fn command(&self, namespace: Option<&str>, program: impl AsRef<OsStr>) -> io::Result<Command> {
        self.command_with(namespace, program, None)
    }

    /// Like [`Holder::command`], under SCHED_FIFO at [`FIFO_PRIORITY`], which children inherit.
    ///
    /// # Errors
    /// If the namespace does not exist.
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
    /// If the namespace does not exist.
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

    /// Executes these acts inside the namespaces, starting in the holder's own network namespace.
    ///
    /// # Errors
    /// If the system refuses the child process, or the namespaces cannot be entered.
    pub fn act(&self, acts: Vec<Act>) -> io::Result<Vec<Answer>> {
        let mut namespaces = self.namespaces()?;
        namespaces.push(self.network(None)?);
        sys::act(namespaces, acts)
    }

    /// Opens a network namespace for entering: a named one, or the holder's own.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn network(&self, namespace: Option<&str>) -> io::Result<File> {
        File::open(namespace.map_or_else(|| self.own("net"), |name| self.path(name)))
    }

    /// Opens the holder's namespaces except the network. The user namespace comes first, because entering it grants the
    /// permission to enter the others.
    fn namespaces(&self) -> io::Result<Vec<File>> {
        let kinds = if self.has_user_namespace { &["user", "mnt"][..] } else { &["mnt"] };
        kinds.iter().map(|kind| File::open(self.own(kind))).collect()
    }

    fn own(&self, kind: &str) -> String {
        format!("/proc/{}/ns/{kind}", self.pid())
    }

    /// Returns the process id, which is valid until [`Holder::end`] has waited for the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of a named namespace's file, as seen from outside.
    fn path(&self, namespace: &str) -> String {
        format!("/proc/{}/root/run/netns/{namespace}", self.pid())
    }

    /// Returns the inode number of a network namespace, which identifies the namespace while it exists. Without a name,
    /// the namespace is the holder's own.
    pub fn identity(&self, namespace: Option<&str>) -> io::Result<u64> {
        Ok(self.network(namespace)?.metadata()?.ino())
    }

    /// Closes the standard input of the process, on which it exits, and waits for it; kills it after [`PATIENCE`].
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

/// Prepares a command of the engine: in a separate process group, so that only the engine handles the terminal's
/// Ctrl-C; with the folders of system tools in its search path, which ordinary users may lack; and in the locale C.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0).env("PATH", search_path()).env("LC_ALL", "C")
}

/// Waits for a process and returns its exit status; `None` if it is still running after `patience`, or the kernel
/// refuses.
pub(crate) fn wait_for(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
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

/// Search path of the machine that a guest runs on.
static MACHINE_PATH: OnceLock<String> = OnceLock::new();

/// Sets the search path of a process that inherits none, such as the first process of a guest.
pub(crate) fn set_search_path(path: String) {
    let _ = MACHINE_PATH.set(path);
}

/// Returns the search path, with the folders of system tools.
pub(crate) fn search_path() -> String {
    let own = || std::env::var("PATH").ok();
    let path = MACHINE_PATH.get().cloned().or_else(own).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    format!("{path}:/usr/sbin:/sbin")
}
