//! Turns off offloads: with them, a packet on the path may consist of many segments.
//!
//! TSO and GSO create such packets at the sender, and UDP segmentation those of QUIC stacks; GRO merges received
//! packets. Without offloads, a queue counts single packets as in the simulator, and the meter sees each: before
//! Linux 6.2, packet sockets with an offload header drop packets that UDP segmentation will cut. Checksum offloads stay
//! on, because packets are not damaged between namespaces.
//!
//! `ethtool` changes the offloads, because it knows which features of a new kernel belong to TSO. Their state is read
//! with an ioctl, which does not need to start a program.
//!
//! Source: ethtool(8); Linux Documentation/networking/segmentation-offloads.rst, include/uapi/linux/ethtool.h.

use crate::error::Error;
use crate::net::shell::{Shell, not_started};
use crate::net::sys::{Act, Answer};
use std::ffi::CString;
use std::io;

struct Feature {
    /// Name in `ethtool -k`.
    name: &'static str,
    /// The command of the ioctl SIOCETHTOOL that queries it, such as `ETHTOOL_GTSO`.
    get: u32,
}

const FEATURES: [Feature; 3] = [
    Feature { name: "tcp-segmentation-offload", get: 0x1e },
    Feature { name: "generic-segmentation-offload", get: 0x23 },
    Feature { name: "generic-receive-offload", get: 0x2b },
];

/// Turns off offloads on interfaces, each in its namespace, and verifies that [`FEATURES`] are off.
pub(crate) fn turn_off(shell: &mut Shell, interfaces: &[(&str, &str)]) -> Result<(), Error> {
    let broken = |error: io::Error| not_started("a helper process", &error);
    let mut acts = Vec::new();
    for (namespace, interface) in interfaces {
        shell
            .run(Some(namespace), &format!("ethtool -K {interface} tso off gso off gro off tx-udp-segmentation off"))?;
        acts.push(Act::Enter(shell.holder.network(Some(namespace)).map_err(broken)?));
        let name = CString::new(*interface).map_err(|error| broken(error.into()))?;
        acts.extend(FEATURES.iter().map(|feature| Act::Ethtool(name.clone(), feature.get)));
    }
    let answers = shell.holder.act(acts).map_err(broken)?;
    for ((namespace, interface), answers) in interfaces.iter().zip(answers.chunks(1 + FEATURES.len())) {
        if let Some(feature) = still_on(&answers[1..]) {
            return Err(Error::new(
                "offloads-stay-on",
                format!(
                    "{feature} cannot be turned off on {interface} in the namespace {namespace}, so packets there can \
                     exceed the MTU"
                ),
                "if that is acceptable, set engine.offloads = true in the scenario",
            ));
        }
    }
    Ok(())
}

fn still_on(values: &[Answer]) -> Option<&'static str> {
    let is_off = |value: &Answer| value.as_deref() == Ok(&0u32.to_ne_bytes());
    FEATURES.iter().zip(values).find(|(_, value)| !is_off(value)).map(|(feature, _)| feature.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enabled_offload_is_detected() {
        let answer = |value: u32| -> Answer { Ok(value.to_ne_bytes().to_vec()) };
        assert_eq!(still_on(&[answer(0), answer(0), answer(0)]), None);
        assert_eq!(still_on(&[answer(0), answer(0), answer(1)]), Some("generic-receive-offload"));
    }
}
