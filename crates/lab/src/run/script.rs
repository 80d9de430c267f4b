//! The changes of an experiment to the machine, as a section of `commands.log`: a script for repeating them manually.

use crate::net::{LinkKind, Network};
use std::collections::BTreeMap;
use std::fmt::Write;

const END: &str = "# end";

/// Returns the section of an experiment. `title` must be unique; `why` is the reason for the selected link, as a clause
/// after `because`.
pub fn section(title: &str, link: LinkKind, why: &str, network: &Network) -> String {
    let link = match link {
        LinkKind::Relay => "the relay",
        LinkKind::Netem => "queue disciplines of the kernel (netem)",
    };
    let mut text = String::new();
    let commands = network.commands();
    let _ = writeln!(text, "# {title}");
    let _ = writeln!(text, "# Link of the path: {link}, because {why}");
    let _ =
        writeln!(text, "# This part alone: sed -n '/^# {title}$/,/^{END}$/{{p;/^{END}$/q}}' commands.log > network.sh");
    let _ = write!(text, "{commands}");
    if !commands.ends_with('\n') {
        text.push('\n');
    }
    let _ = writeln!(text, "{END}");
    text
}

/// Logs the kernel settings that the host in `namespace` has applied.
pub fn note_sysctls(network: &mut Network, namespace: &str, sysctls: &BTreeMap<String, String>) {
    for (name, value) in sysctls {
        network.note(&format!("nsenter --net=/run/netns/{namespace} sysctl -qw '{name}={value}'"));
    }
}

/// Writes the commands of the guest in `namespace` as comments, since the guest is not part of the network.
pub fn note_guest(network: &mut Network, namespace: &str, inside: &[String], sysctls: &BTreeMap<String, String>) {
    for line in inside {
        network.note(&format!("# in the guest of {namespace}: {line}"));
    }
    for (name, value) in sysctls {
        network.note(&format!("# in the guest of {namespace}: sysctl -qw '{name}={value}'"));
    }
}
