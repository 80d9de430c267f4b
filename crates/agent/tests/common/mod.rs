//! Helpers of the agent's tests: processes, waiting, and network namespaces.

mod agent;
mod waiting;

pub use agent::{Done, Running, assert_refused, left_out, link_agent, run};
use std::process::{Child, Command, Stdio};
pub use waiting::wait_until;

/// A network namespace that is removed when the test ends.
pub struct Namespace {
    /// The process that holds the namespace open.
    pub holder: Child,
}

impl Namespace {
    fn new() -> Namespace {
        let holder = Command::new("unshare").args(["--net", "cat"]).stdin(Stdio::piped()).spawn().expect("unshare");
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
        let (ours, holder_pid) = (of("self").expect("a namespace"), holder.id().to_string());
        wait_until("a namespace is made", || of(&holder_pid).is_ok_and(|theirs| theirs != ours));
        Namespace { holder }
    }

    /// Returns two connected namespaces: the sender is 10.9.8.1 or fd09::1, the receiver 10.9.8.2 or fd09::2.
    pub fn pair() -> (Namespace, Namespace) {
        let (sender, receiver) = (Namespace::new(), Namespace::new());
        let (near, far) = (sender.holder.id().to_string(), receiver.holder.id().to_string());
        let cable = ["ip", "link", "add", "cable", "netns", &near, "type", "veth", "peer", "cable", "netns", &far];
        assert!(Command::new(cable[0]).args(&cable[1..]).status().expect("ip").success());
        for (namespace, v4, v6) in [(&sender, "10.9.8.1/24", "fd09::1/64"), (&receiver, "10.9.8.2/24", "fd09::2/64")] {
            for line in [
                vec!["ip", "addr", "add", v4, "dev", "cable"],
                // Without duplicate address detection, the address is usable immediately.
                vec!["ip", "addr", "add", v6, "dev", "cable", "nodad"],
                vec!["ip", "link", "set", "cable", "up"],
                vec!["ip", "link", "set", "lo", "up"],
            ] {
                assert!(namespace.command(&line).status().expect("ip").success(), "{line:?}");
            }
        }
        (sender, receiver)
    }

    /// Returns the inode number of the namespace.
    #[allow(dead_code, reason = "some tests need none")]
    pub fn number(&self) -> u64 {
        let link = std::fs::read_link(format!("/proc/{}/ns/net", self.holder.id())).expect("a namespace");
        let text = link.to_string_lossy();
        let number = text.strip_prefix("net:[").and_then(|text| text.strip_suffix(']')).expect("a number");
        number.parse().expect("a number")
    }

    /// Returns a command that runs inside the namespace.
    pub fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string()).arg("--net").args(line);
        command
    }

    /// Returns the output of a command inside the namespace; the command must succeed.
    pub fn output(&self, line: &[&str]) -> String {
        let output = self.command(line).output().expect("it starts");
        assert!(output.status.success(), "{line:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
