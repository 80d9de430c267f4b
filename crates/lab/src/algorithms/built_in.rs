//! The algorithms that are built into the agent: the reason why this machine's kernel lacks one, and the command that
//! adds it. The checks do not require root.

use super::agent::{AGENT, agent};
use crate::error::Error;
use crate::net::{probe, sysctl};
use std::path::Path;

/// BBR with a rule for senders on a shared CPU.
pub const BBR_CPU: &str = "bbr_cpu";

/// BBR version 3.
pub const BBR3: &str = "bbr3";

/// BBR with parameters.
pub const BBR_TUNED: &str = "bbr_tuned";

/// BBR with a probing gain that adapts to the path.
pub const BBR_AUTO: &str = "bbr_auto";

/// Algorithms that are built into the agent.
pub const BUILT_IN: [&str; 4] = [BBR_CPU, BBR3, BBR_TUNED, BBR_AUTO];

/// Returns whether an algorithm of this name is built into the agent.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// Minimum kernel version for these algorithms.
const FLOOR: (u32, u32) = (6, 1);

/// The kernel's own BBR, which all built-in algorithms except `bbr3` call.
const BBR: &str = "bbr";

const ELSEWHERE: &str = "or run it in a guest: --engine vm";

/// Properties of a machine that any user can see.
#[derive(Clone, Debug)]
struct Machine {
    release: String,
    /// Whether the kernel has type information (BTF).
    has_types: bool,
    /// Whether the kernel compiles eBPF to machine code (JIT); true if that is unknown.
    has_jit: bool,
    /// Whether the kernel has BBR, built in or as a module; true if that is unknown.
    may_have_bbr: bool,
    /// Command that calls the agent; `None` if the agent is missing.
    agent: Option<String>,
}

/// Returns the reason why this machine's kernel lacks the algorithm `name`; `None` if it has it. `engine` is the path
/// of this program.
pub fn why_not(name: &str, engine: &Path) -> Option<Error> {
    let algorithms = probe::algorithms();
    if algorithms.iter().any(|algorithm| algorithm == name) {
        return None;
    }
    let release = probe::release();
    let machine = Machine {
        has_types: Path::new("/sys/kernel/btf/vmlinux").exists(),
        has_jit: sysctl::read("net.core.bpf_jit_enable").is_none_or(|value| value != "0"),
        may_have_bbr: algorithms.iter().any(|name| name == BBR)
            || probe::modules().is_none_or(|list| list.contains("/tcp_bbr.ko")),
        agent: call_of_agent(engine),
        release,
    };
    Some(explain(name, &machine))
}

fn call_of_agent(engine: &Path) -> Option<String> {
    let place = agent(engine)?;
    let is_on_path = probe::tool(AGENT).is_some_and(|path| path == place);
    Some(if is_on_path { AGENT.to_owned() } else { place.display().to_string() })
}

fn explain(name: &str, machine: &Machine) -> Error {
    let Machine { release, has_types, has_jit, may_have_bbr, agent } = machine;
    if version(release).is_some_and(|version| version < FLOOR) {
        let message = format!("it needs Linux {}.{} or newer, and this kernel is {release}", FLOOR.0, FLOOR.1);
        return Error::new("unknown-cc", message, format!("boot a newer kernel, {ELSEWHERE}"));
    }
    if !has_types {
        let message = "it needs a kernel with type information (CONFIG_DEBUG_INFO_BTF), but /sys/kernel/btf/vmlinux \
                       does not exist";
        return Error::new("unknown-cc", message, format!("boot the distribution's own kernel, {ELSEWHERE}"));
    }
    if !has_jit {
        let message = "it needs the kernel's eBPF JIT compiler, which net.core.bpf_jit_enable = 0 turns off";
        return Error::new("unknown-cc", message, "sudo sysctl net.core.bpf_jit_enable=1");
    }
    if name != BBR3 && !may_have_bbr {
        let message = format!(
            "it needs the kernel's own BBR (CONFIG_TCP_CONG_BBR), which this kernel ({release}) has neither built in \
             nor as the module tcp_bbr"
        );
        return Error::new("unknown-cc", message, format!("install the modules of this kernel, {ELSEWHERE}"));
    }
    let message = "it is not loaded";
    match agent {
        Some(agent) => Error::new("unknown-cc", message, format!("sudo {agent} cc load {name} --keep")),
        None => {
            let hint = format!(
                "get {AGENT} (docs/reference/agent.md; make agent in a source tree), then: sudo {AGENT} cc load {name} \
                 --keep"
            );
            Error::new("unknown-cc", message, hint)
        }
    }
}

/// Parses a kernel release: `6.1.0-50-amd64` is (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            release: "6.12.1".to_owned(),
            has_types: true,
            has_jit: true,
            may_have_bbr: true,
            agent: Some(AGENT.to_owned()),
        }
    }

    #[test]
    fn the_load_command_is_reported_for_a_loadable_algorithm() {
        let error = explain(BBR_CPU, &machine());
        assert_eq!(error.message, "it is not loaded");
        assert_eq!(error.hint, "sudo thalweg-agent cc load bbr_cpu --keep");
        let error = explain(BBR_CPU, &Machine { agent: None, ..machine() });
        assert!(error.hint.contains("make agent") && error.hint.contains("cc load bbr_cpu"), "{error}");
    }

    #[test]
    fn missing_kernel_features_are_named() {
        let lacks = |change: fn(&mut Machine)| {
            let mut machine = machine();
            change(&mut machine);
            let error = explain(BBR_CPU, &machine);
            assert!(!error.hint.contains("cc load"), "there is nothing to load yet: {error}");
            error.message
        };
        assert!(
            lacks(|it| it.release = "5.15.0-91-generic".to_owned())
                .contains("6.1 or newer, and this kernel is 5.15.0-91")
        );
        assert!(lacks(|it| it.has_types = false).contains("CONFIG_DEBUG_INFO_BTF"));
        assert!(lacks(|it| it.has_jit = false).contains("net.core.bpf_jit_enable = 0"));
        assert!(lacks(|it| it.may_have_bbr = false).contains("CONFIG_TCP_CONG_BBR"));
    }

    #[test]
    fn bbr3_does_not_need_the_kernel_bbr() {
        let error = explain(BBR3, &Machine { may_have_bbr: false, ..machine() });
        assert_eq!(error.hint, "sudo thalweg-agent cc load bbr3 --keep");
    }

    #[test]
    fn kernel_versions_are_parsed_from_release_strings() {
        assert_eq!(version("6.1.0-50-cloud-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44"), Some((6, 18)));
        assert_eq!(version("unknown"), None);
    }
}
