//! The process `thalweg-engine host`: one host of an experiment.

use crate::error::Error;
use crate::protocol::{Command, Configuration, HostEvent, Role};
use crate::stage::{CommandQueue, EventWriter, HostReport, Stage, clock_event};
use crate::{diag, meter, net, program, relay, session, traffic};

/// Executes the commands on standard input, at whose end the process exits.
///
/// # Errors
/// The error that stopped the host; it was also reported as an event.
pub fn serve() -> Result<(), Error> {
    let events = EventWriter::open();
    let outcome = CommandQueue::open().and_then(|commands| play(&commands, &events));
    if let Err(error) = &outcome {
        events.send(&HostEvent::Failed(error.clone()));
    }
    outcome
}

fn play(commands: &CommandQueue, events: &EventWriter) -> Result<(), Error> {
    let Command::Configure(configuration) = commands.next() else {
        return Err(Error::new(
            "bad-command",
            "the first command is not `configure`",
            "see docs/reference/host-protocol.md",
        ));
    };
    let Configuration { sysctls, experiment, role } = *configuration;
    let sysctls = net::sysctl::apply(&sysctls)?;
    let configured = move || HostEvent::Configured {
        sysctls: sysctls.clone(),
        cc: net::probe::algorithms(),
        kernel: net::probe::release(),
    };
    let stage = Stage { commands, events, configured: &configured };
    let HostReport { measured, untrustworthy } = match role {
        Role::End { host, sends, background, receives, port } => {
            let part = traffic::Part::new(&host, &sends, background, receives, port);
            let mut stopped = traffic::play(&stage, &experiment, &part)?;
            stopped.measured.extend(net::qdisc::measured(&experiment, &host)?);
            stopped
        }
        Role::Relay { senders, receiver, traces, capture } => {
            relay::carry(&stage, &experiment, &senders, &receiver, &traces, capture.as_deref())?
        }
        Role::Programs { serves, runs, folder, in_guest } => {
            program::play(&stage, &experiment, &program::Programs { serves, runs, folder, in_guest })?
        }
        Role::Meter { points, servers } => meter::play(&stage, &experiment, &points, &servers)?,
        Role::Observer { hosts, receiver } => session::observer::observe(&stage, &experiment, &hosts, receiver)?,
        Role::Qdiscs { watch } => diag::watch_qdiscs(&stage, &experiment, &watch)?,
    };
    events.send(&HostEvent::Stopped { measured, untrustworthy });
    // The process must not exit before the engine has read all rows.
    loop {
        if commands.next() == Command::Clock {
            events.send(&clock_event());
        }
    }
}
