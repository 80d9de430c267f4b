//! The process `thalweg-engine guest keep`: starts a kernel, and removes everything that it leaves.
//!
//! A user-mode Linux kernel consists of several processes. Those that run the guest's programs are traced by the
//! kernel's process, and may continue if only that process is killed. Therefore, the entire process group must be
//! killed. An engine that is killed cannot do that, but the supervisor can: it ends the guest and removes the guest's
//! folder when its standard input ends.
//!
//! Standard input is one line with an [`Order`]; standard output is a line per [`Answer`].

use super::folder::Folder;
use super::seat::Seat;
use super::{files, inside, sys};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The kernel and task that a supervisor starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Path of the kernel.
    pub kernel: PathBuf,
    /// Memory of the guest in MiB.
    pub memory_mib: u64,
    /// Content of the guest's task file.
    pub task: String,
}

/// Answer of a supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The guest has started, in this folder.
    Started(PathBuf),
    /// The guest's kernel has exited, with this status.
    Ended(String),
    /// The guest cannot be started, for this reason.
    Refused(String),
}

/// Initial time of the guest's clock, in nanoseconds since 1970; constant for reproducibility.
const START: &str = "time-travel-start=1700000000000000000";

/// Executes the order on standard input.
///
/// # Errors
/// If the order is invalid, an answer cannot be written, or a system call fails.
pub fn keep() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    let folder = match Folder::make(&std::env::temp_dir()) {
        Ok(folder) => folder,
        Err(error) => return say(&Answer::Refused(format!("no directory can be created for the guest: {error}"))),
    };
    let seat = Seat::take("thalweg-guest");
    let mut child = match start(folder.path(), &order) {
        Ok(child) => child,
        Err(error) => {
            return say(&Answer::Refused(format!("{} cannot be started: {error}", order.kernel.display())));
        }
    };
    // An error is returned after the guest is ended.
    let outcome = say(&Answer::Started(folder.path().to_owned())).and_then(|()| wait(&child));
    let status = end(&mut child)?;
    drop(seat);
    if outcome? {
        say(&Answer::Ended(status))?;
        wait_for_end_of_input();
    }
    Ok(())
}

fn say(answer: &Answer) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, answer)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Starts the kernel. Its arguments must be reproducible, because the kernel also derives random numbers from them.
fn start(folder: &Path, order: &Order) -> io::Result<Child> {
    fs::write(folder.join(files::TASK), &order.task)?;
    fs::write(folder.join(files::SEARCH_PATH), std::env::var("PATH").unwrap_or_default())?;
    File::create(folder.join(files::WORDS))?;
    File::create(folder.join(files::PULSE))?;
    for output in files::OUTPUT {
        File::create(folder.join(output))?;
    }
    std::os::unix::fs::symlink(std::env::current_exe()?, folder.join(files::PROGRAM))?;
    let console = File::create(folder.join(files::CONSOLE))?;
    let mut command = Command::new(&order.kernel);
    command
        .arg(format!("mem={}M", order.memory_mib))
        .args(["time-travel=inf-cpu", START])
        .args(["root=none", "rootfstype=hostfs", "rw", "con=null", "con0=fd:0,fd:1", "quiet", "norandmaps"])
        .arg("uml_dir=.")
        .arg(format!("init={}/{}", inside::FOLDER, files::PROGRAM))
        .args(["--", "guest", "begin"])
        .current_dir(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(console.try_clone()?)
        .stderr(console);
    sys::without_randomness(&mut command).spawn()
}

/// Waits for the exit of the guest (true) or the end of standard input.
fn wait(child: &Child) -> io::Result<bool> {
    let guest = pidfd_open(pid_of(child), PidfdFlags::empty())?;
    let stdin = io::stdin();
    loop {
        let mut fds = [PollFd::new(&guest, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(true);
        }
        if !fds[1].revents().is_empty() {
            return Ok(false);
        }
    }
}

/// Terminates the processes of the guest; returns the status of the kernel.
fn end(child: &mut Child) -> io::Result<String> {
    // Killed before the kernel's process is reaped: until then the id of the process group cannot be reused.
    let _ = kill_process_group(pid_of(child), Signal::KILL);
    child.wait().map(|status| status.to_string())
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn wait_for_end_of_input() {
    let mut buffer = [0; 64];
    let mut stdin = io::stdin().lock();
    while matches!(io::Read::read(&mut stdin, &mut buffer), Ok(1..)) {}
}
