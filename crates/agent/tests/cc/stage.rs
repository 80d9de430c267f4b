//! The agent as a process, and two network namespaces between which connections run.

pub use crate::common::{Namespace, wait_until};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The agent, and the sole right to register algorithms: names are the whole machine's, tests run at the same time.
pub struct Stage {
    _lock: File,
    folder: tempfile::TempDir,
}

/// What a command has printed.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

impl Stage {
    /// The stage, or nothing where algorithms cannot be registered: a test says so and ends. In CI that is a failure.
    pub fn new() -> Option<Stage> {
        let lock = File::create(std::env::temp_dir().join("thalweg-agent-tests.lock")).expect("a file for the lock");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
        let folder = tempfile::tempdir().expect("a folder");
        // Where any user may run it.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let stage = Stage { _lock: lock, folder };
        std::fs::copy(env!("CARGO_BIN_EXE_thalweg-agent"), stage.agent_file()).expect("a copy of the agent");
        let status = stage.agent(&["cc", "status"]);
        let why = match status.code {
            Some(0) if status.out.contains("bbr_cpu") => "bbr_cpu is in use on this machine".to_owned(),
            Some(0) => return Some(stage),
            _ => status.error,
        };
        assert!(std::env::var("THALWEG_CI").as_deref() != Ok("1"), "this must be tested, but: {why}");
        eprintln!("left out: algorithms cannot be registered here: {why}");
        None
    }

    fn agent_file(&self) -> PathBuf {
        self.folder.path().join("thalweg-agent")
    }

    /// An object that the build has compiled.
    pub fn object(&self, name: &str) -> String {
        format!(concat!(env!("OUT_DIR"), "/{}.bpf.o"), name)
    }

    /// Runs the agent to its end.
    pub fn agent(&self, arguments: &[&str]) -> Done {
        self.run(Command::new(self.agent_file()).args(arguments))
    }

    /// Runs the agent as an ordinary user.
    pub fn agent_as_nobody(&self, arguments: &[&str]) -> Done {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        self.run(command.arg(self.agent_file()).args(arguments))
    }

    fn run(&self, command: &mut Command) -> Done {
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Done { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }

    /// Starts `cc load` and waits until it is ready.
    pub fn load(&self, what: &str) -> Loader {
        Loader::start(Command::new(self.agent_file()).args(["cc", "load", what]))
    }

    /// The same in a network namespace.
    pub fn load_in(&self, namespace: &Namespace, what: &str) -> Loader {
        Loader::start(&mut namespace.command(&[self.agent_file().to_str().unwrap(), "cc", "load", what]))
    }

    /// An algorithm in eBPF that new connections get, as `cc status` shows it.
    pub fn registered(&self, name: &str) -> Option<Value> {
        self.status().into_iter().find(|one| one["name"] == name && one["state"] != "leaving")
    }

    /// One that was taken back, and is still used.
    pub fn leaving(&self, name: &str) -> Option<Value> {
        self.status().into_iter().find(|one| one["name"] == name && one["state"] == "leaving")
    }

    fn status(&self) -> Vec<Value> {
        let done = self.agent(&["cc", "status", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let status: Value = serde_json::from_str(&done.out).expect("JSON");
        status["algorithms"].as_array().expect("a list").clone()
    }

    /// How `cc list` shows an algorithm.
    pub fn listed(&self, name: &str) -> Option<Value> {
        let done = self.agent(&["cc", "list", "--json"]);
        let list: Value = serde_json::from_str(&done.out).expect("JSON");
        list["algorithms"].as_array().expect("a list").iter().find(|one| one["name"] == name).cloned()
    }
}

impl Drop for Stage {
    /// A test that fails leaves nothing registered.
    fn drop(&mut self) {
        for name in ["bbr_cpu", "fixed_window", "rejected"] {
            self.agent(&["cc", "unload", name]);
        }
    }
}

/// A `cc load` that waits to be ended.
pub struct Loader {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub said: String,
}

impl Loader {
    fn start(command: &mut Command) -> Loader {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the agent");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut said = String::new();
        out.read_line(&mut said).expect("its first line");
        Loader { child, out, said }
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Ends it with a signal; returns its code and all that it has said.
    pub fn end(mut self, signal: rustix::process::Signal) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).expect("it lives");
        self.wait()
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code(), format!("{}{rest}", self.said))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
