//! Offloads: with them, what looks like a packet on the path may be up to 64 KiB of many.
//!
//! TSO and GSO make such packets at the sender, GRO puts received ones together. Without them a queue counts the packets
//! that it counts in the simulator. Checksums stay as they are: between namespaces nothing is damaged, and computing them
//! would take time for nothing.
//!
//! Source: ethtool(8); Linux Documentation/networking/segmentation-offloads.rst.

use crate::error::Error;
use crate::net::shell::Shell;

/// What has to be off, as `ethtool -k` names it.
const FEATURES: [&str; 3] = ["tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload"];

/// Turns them off on an interface, and looks whether they are.
pub(crate) fn turn_off(shell: &mut Shell, namespace: &str, interface: &str) -> Result<(), Error> {
    shell.run(Some(namespace), &format!("ethtool -K {interface} tso off gso off gro off"))?;
    let features = shell.read(Some(namespace), &format!("ethtool -k {interface}"))?;
    match still_on(&features) {
        Some(feature) => Err(Error::new(
            "offloads-stay-on",
            format!(
                "{feature} stays on at {interface} in the namespace {namespace}, so that packets there are of any size"
            ),
            "if that is fine, say so in the scenario: [engine] offloads = true",
        )),
        None => Ok(()),
    }
}

/// The first of them that is not off.
fn still_on(features: &str) -> Option<&'static str> {
    let is_off = |name: &str| {
        let value = features.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        value.is_some_and(|value| value.split_whitespace().next() == Some("off"))
    };
    FEATURES.into_iter().find(|name| !is_off(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_is_on_or_not_told_is_found() {
        let all_off = "Features for eth0:\nrx-checksumming: on\ntcp-segmentation-offload: off\n\ttx-tcp-segmentation: off\n\
                       generic-segmentation-offload: off\ngeneric-receive-offload: off [fixed]\n";
        assert_eq!(still_on(all_off), None);
        let one_on = all_off.replace("generic-receive-offload: off", "generic-receive-offload: on");
        assert_eq!(still_on(&one_on), Some("generic-receive-offload"));
        assert_eq!(still_on("Features for eth0:\n"), Some("tcp-segmentation-offload"));
    }
}
