//! Selects the implementation of an experiment's links.

use crate::error::Error;
use crate::net::{LinkKind, netem, probe};
use std::collections::BTreeSet;
use thalweg_plan::plan::{Emulator, Experiment, Queue, Traces};

/// Selects the kind of link for an experiment on this machine, and returns it with the reason as text.
///
/// The default is the relay, which behaves like the simulator. Queue disciplines are used if packet sockets are not
/// permitted, and for `cake`, which the relay lacks.
///
/// # Errors
/// If this machine does not support the link, or the link does not support a feature of the experiment.
pub fn choose_link(experiment: &Experiment, traces: &Traces) -> Result<(LinkKind, String), Error> {
    let netem = || netem::check(experiment, traces, &probe::qdiscs()?);
    if [&experiment.forward, &experiment.reverse].into_iter().any(|link| matches!(link.queue, Queue::Cake { .. })) {
        return match experiment.engine.link {
            Emulator::Relay => Err(Error::new(
                "not-on-relay",
                "engine.link = \"relay\" requests the built-in emulator, which lacks the queue discipline `cake`",
                "remove engine.link from the scenario, or use fq_codel",
            )),
            Emulator::Auto | Emulator::Netem => {
                netem().map(|()| (LinkKind::Netem, "only the kernel has the queue discipline cake".to_owned()))
            }
        };
    }
    choose(experiment.engine.link, Able { relay: probe::packet_sockets, netem })
}

/// Like [`choose_link`], for an experiment in virtual time on a kernel with the `available` queue disciplines.
///
/// # Errors
/// If the experiment requests the relay, or a feature that netem or the kernel does not support.
pub fn choose_link_in_virtual_time(
    experiment: &Experiment,
    traces: &Traces,
    available: &BTreeSet<String>,
) -> Result<(LinkKind, String), Error> {
    match experiment.engine.link {
        Emulator::Relay => Err(Error::new(
            "not-in-virtual-time",
            "engine.link = \"relay\" requests the built-in emulator, which polls the clock until a packet is due; \
             virtual time does not advance while a program runs",
            "remove engine.link from the scenario, or use --engine kernel",
        )),
        wish => {
            netem::check(experiment, traces, available).map_err(netem::in_virtual_time)?;
            let why = match wish {
                Emulator::Auto => "their timers are exact in virtual time",
                Emulator::Relay | Emulator::Netem => "the scenario requests it",
            };
            Ok((LinkKind::Netem, why.to_owned()))
        }
    }
}

/// Checks of the machine, which run only if their result is needed.
struct Able<R, N> {
    relay: R,
    netem: N,
}

fn choose<R, N>(wish: Emulator, able: Able<R, N>) -> Result<(LinkKind, String), Error>
where
    R: Fn() -> Result<(), String>,
    N: Fn() -> Result<(), Error>,
{
    let said_so = "the scenario requests it".to_owned();
    match wish {
        Emulator::Netem => (able.netem)().map(|()| (LinkKind::Netem, said_so)),
        Emulator::Relay => match (able.relay)() {
            Ok(()) => Ok((LinkKind::Relay, said_so)),
            Err(why) => Err(no_relay(&why, "set engine.link = \"netem\" in the scenario")),
        },
        Emulator::Auto => match ((able.relay)(), &able.netem) {
            (Ok(()), _) => Ok((LinkKind::Relay, "it treats packets as the simulator does".to_owned())),
            (Err(why), netem) => match netem() {
                Ok(()) => Ok((
                    LinkKind::Netem,
                    format!("this machine refuses the packet sockets that the relay needs ({why})"),
                )),
                Err(error) => Err(no_relay(&why, &format!("netem cannot be used either: {}", error.message))),
            },
        },
    }
}

fn no_relay(why: &str, otherwise: &str) -> Error {
    Error::new(
        "no-packet-sockets",
        format!("the relay needs packet sockets (AF_PACKET), and this machine refuses them: {why}"),
        format!(
            "{otherwise}; or load the module: sudo modprobe af_packet; or use the simulator: thalweg run FILE --engine \
             sim"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wish: Emulator, has_relay: bool, has_netem: bool) -> Result<(LinkKind, String), Error> {
        let relay = move || if has_relay { Ok(()) } else { Err("Operation not permitted".to_owned()) };
        let netem = move || if has_netem { Ok(()) } else { Err(Error::new("no-qdisc", "no netem", "relay")) };
        choose(wish, Able { relay, netem })
    }

    #[test]
    fn auto_selects_the_relay_and_netem_only_if_the_relay_cannot_run() {
        let kind = |relay, netem| chosen(Emulator::Auto, relay, netem).map(|(kind, _)| kind);
        assert_eq!(kind(true, true), Ok(LinkKind::Relay));
        assert_eq!(kind(true, false), Ok(LinkKind::Relay));
        assert_eq!(kind(false, true), Ok(LinkKind::Netem));
        let error = kind(false, false).expect_err("neither");
        assert!(error.message.contains("Operation not permitted") && error.hint.contains("no netem"), "{error}");
    }

    #[test]
    fn an_explicit_emulator_is_used_or_rejected_and_never_replaced() {
        assert_eq!(chosen(Emulator::Netem, true, false).expect_err("no netem").code, "no-qdisc");
        let error = chosen(Emulator::Relay, false, true).expect_err("no relay");
        assert_eq!(error.code, "no-packet-sockets");
        assert!(error.hint.contains("engine.link = \"netem\""), "{error}");
    }
}
