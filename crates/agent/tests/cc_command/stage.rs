//! The agent as a process, for tests of registrations.

use crate::common::{Done, Namespace, Running, left_out, link_agent, run};
use crate::registration::lock_registrations;
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const BUILT_IN: [&str; 4] = ["bbr_cpu", "bbr3", "bbr_tuned", "bbr_auto"];

/// The agent, with a lock on registrations.
pub struct Stage {
    _lock: File,
    folder: tempfile::TempDir,
    /// Whether no built-in algorithm was registered before the test.
    is_ours: bool,
}

impl Stage {
    /// Returns `None` and reports the skip if algorithms cannot be registered; in CI, the test fails.
    pub fn new() -> Option<Stage> {
        let lock = lock_registrations();
        let folder = tempfile::tempdir().expect("a folder");
        // A folder from which any user may execute files.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut stage = Stage { _lock: lock, folder, is_ours: false };
        link_agent(&stage.agent_file()).expect("the agent");
        let status = stage.agent(&["cc", "status"]);
        let why = match status.code {
            Some(0) if BUILT_IN.iter().any(|name| status.out.contains(&format!("{name}:"))) => {
                format!("one of {} is in use on this machine", BUILT_IN.join(", "))
            }
            Some(0) => {
                stage.is_ours = true;
                return Some(stage);
            }
            _ => status.error,
        };
        left_out("algorithms cannot be registered here", &why);
        None
    }

    /// Returns the path of the agent in the test's folder.
    pub fn agent_path(&self) -> String {
        self.agent_file().display().to_string()
    }

    fn agent_file(&self) -> PathBuf {
        self.folder.path().join("thalweg-agent")
    }

    /// Returns the kernel's version, such as (6, 1).
    pub fn kernel(&self) -> (u32, u32) {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().expect("a number"));
        (numbers.next().expect("a version"), numbers.next().expect("a version"))
    }

    /// Returns the path of an object that the build has compiled.
    pub fn object(&self, name: &str) -> String {
        format!(concat!(env!("OUT_DIR"), "/{}.bpf.o"), name)
    }

    /// Runs the agent to its end.
    pub fn agent(&self, arguments: &[&str]) -> Done {
        run(Command::new(self.agent_file()).args(arguments))
    }

    /// Runs the agent as an ordinary user.
    pub fn agent_as_unprivileged(&self, arguments: &[&str]) -> Done {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        run(command.arg(self.agent_file()).args(arguments))
    }

    /// Starts `cc load` and waits for its first line of output.
    pub fn load(&self, what: &str) -> Running {
        self.load_with(what, &[])
    }

    /// Like [`Stage::load`], with settings, each as `PARAM=VALUE`.
    pub fn load_with(&self, what: &str, settings: &[&str]) -> Running {
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        Running::start(Command::new(self.agent_file()).args(["cc", "load", what]).args(set))
    }

    /// Like [`Stage::load`], in a network namespace.
    pub fn load_in(&self, namespace: &Namespace, what: &str) -> Running {
        Running::start(&mut namespace.command(&[self.agent_file().to_str().unwrap(), "cc", "load", what]))
    }

    /// Returns the entry of a registered eBPF algorithm in `cc status`.
    pub fn registered(&self, name: &str) -> Option<Value> {
        self.status().into_iter().find(|algorithm| algorithm["name"] == name && algorithm["state"] != "leaving")
    }

    /// Returns the entry of an unregistered algorithm that is still in use.
    pub fn leaving(&self, name: &str) -> Option<Value> {
        self.status().into_iter().find(|algorithm| algorithm["name"] == name && algorithm["state"] == "leaving")
    }

    fn status(&self) -> Vec<Value> {
        let done = self.agent(&["cc", "status", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let status: Value = serde_json::from_str(&done.out).expect("JSON");
        status["algorithms"].as_array().expect("a list").clone()
    }

    /// Returns the entry of an algorithm in `cc list`.
    pub fn listed(&self, name: &str) -> Option<Value> {
        let done = self.agent(&["cc", "list", "--json"]);
        let list: Value = serde_json::from_str(&done.out).expect("JSON");
        list["algorithms"].as_array().expect("a list").iter().find(|algorithm| algorithm["name"] == name).cloned()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        let status = self.agent(&["cc", "status"]).out;
        for name in BUILT_IN.into_iter().chain(["fixed_window", "rejected"]) {
            if status.contains(&format!("{name}: registered")) {
                self.agent(&["cc", "unload", name]);
            }
        }
    }
}
