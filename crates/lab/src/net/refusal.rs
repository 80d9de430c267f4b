//! Finds the reason why this machine refuses namespaces, and the commands with which its administrator permits them.
//!
//! Source: user_namespaces(7), namespaces(7). Debian's kernels have kernel.unprivileged_userns_clone, and Ubuntu's
//! kernels have kernel.apparmor_restrict_unprivileged_userns.

use crate::error::Error;
use crate::net::sysctl;
use std::io;
use thalweg_store::Shortage;

/// Settings that can forbid namespaces: name, forbidding value, and remedy.
const SWITCHES: &[(&str, &str, &str)] = &[
    ("user.max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=10000"),
    ("user.max_net_namespaces", "0", "sudo sysctl -w user.max_net_namespaces=10000"),
    ("user.max_mnt_namespaces", "0", "sudo sysctl -w user.max_mnt_namespaces=10000"),
    ("kernel.unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "kernel.apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// Returns the error that explains a failure of `unshare`.
pub(crate) fn explain(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return missing_tool("unshare");
    }
    if let Some(shortage) = Shortage::of(error) {
        return Error::new(
            shortage.code(),
            format!("a network namespace cannot be created: found {} ({error})", shortage.what()),
            shortage.hint(),
        );
    }
    explain_with(&error.to_string(), sysctl::read)
}

fn explain_with(reason: &str, setting: impl Fn(&str) -> Option<String>) -> Error {
    let switch = SWITCHES.iter().find(|(name, forbids, _)| setting(name).as_deref() == Some(*forbids));
    match switch {
        Some((name, forbids, mend)) => Error::new(
            "no-namespaces",
            format!("network namespaces are disabled: {name} is {forbids} ({reason})"),
            format!("{mend}; or run thalweg as root; or use the simulator: thalweg run FILE --engine sim"),
        ),
        None => Error::new(
            "no-namespaces",
            format!("this machine refuses network namespaces ({reason}), and no known setting disables them"),
            "in a container, start it with --security-opt seccomp=unconfined --cap-add SYS_ADMIN; elsewhere, run \
             thalweg as root; or use the simulator: thalweg run FILE --engine sim",
        ),
    }
}

/// Returns the error for a missing program.
pub(crate) fn missing_tool(name: &str) -> Error {
    let package = match name {
        "ip" | "tc" => "iproute2",
        "ethtool" => "ethtool",
        "cat" => "coreutils",
        _ => "util-linux",
    };
    Error::new(
        "no-tool",
        format!("the program `{name}` was not found in PATH, /usr/sbin or /sbin"),
        format!("sudo apt-get install {package} (the name may differ on other distributions)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(name: &'static str, value: &'static str) -> Error {
        explain_with("unshare: unshare failed: No space left on device", move |setting| {
            Some(if setting == name { value } else { "5" }.to_owned())
        })
    }

    #[test]
    fn each_blocking_sysctl_is_named_with_the_command_that_changes_it() {
        for (name, forbids, _) in SWITCHES {
            let error = explained(name, forbids);
            assert_eq!(error.code, "no-namespaces");
            assert!(error.message.contains(&format!("{name} is {forbids} ")), "{error}");
            assert!(error.hint.contains(&format!("sudo sysctl -w {name}=")), "{error}");
        }
    }

    #[test]
    fn an_exhausted_resource_is_not_reported_as_a_permission_error() {
        let error = explain(&io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(error.code, "too-few-processes");
        assert!(error.hint.contains("ulimit -u") && !error.hint.contains("seccomp"), "{error}");
    }

    #[test]
    fn without_a_blocking_sysctl_the_hint_covers_containers_and_root() {
        let error = explained("another", "0");
        assert!(error.hint.contains("seccomp") && error.hint.contains("as root"), "{error}");
        assert!(error.message.contains("No space left on device"), "{error}");
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let error = missing_tool("tc");
        assert_eq!(error.code, "no-tool");
        assert!(error.hint.contains("iproute2"), "{error}");
    }
}
