//! The agent as a process.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The output and the exit code of a command.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Done {
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Done { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
}

/// Links the agent to a path, or copies it if the link fails.
///
/// # Errors
/// If the file cannot be created.
pub fn link_agent(path: &Path) -> io::Result<()> {
    let agent = env!("CARGO_BIN_EXE_thalweg-agent");
    fs::hard_link(agent, path).or_else(|_| fs::copy(agent, path).map(drop))
}

/// Checks an error: the exit code, the problem code and a part of the message.
pub fn assert_refused(done: &Done, code: i32, name: &str, hint: &str) {
    assert_eq!(done.code, Some(code), "{done:?}");
    assert!(done.error.contains(&format!("[{name}]")), "{}", done.error);
    assert!(done.error.contains(hint), "{}", done.error);
    assert_eq!(done.out, "");
}

/// Reports that a test is skipped on this machine; in CI, the test fails.
pub fn left_out(what: &str, why: &str) {
    assert!(std::env::var("THALWEG_CI").as_deref() != Ok("1"), "this must be tested, but: {why}");
    eprintln!("left out: {what}: {why}");
}

/// A running agent, which is killed when it is dropped.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Its first line of output.
    pub said: String,
}

impl Running {
    /// Starts the command, and waits for its first line of output.
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the agent");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut first_line = String::new();
        out.read_line(&mut first_line).expect("its first line");
        Running { child, out, said: first_line }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the process with a signal; returns its exit code and its complete output.
    pub fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = Pid::from_raw(self.pid().try_into().expect("a process")).expect("a process");
        kill_process(pid, signal).expect("it lives");
        self.wait()
    }

    /// Waits until the process has exited.
    pub fn wait(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code(), format!("{}{rest}", self.said))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
