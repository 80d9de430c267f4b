//! The process `thalweg-engine host`: one host of an experiment.

mod inbox;

pub use inbox::Inbox;

use crate::clock::{Clock, monotonic_ns};
use crate::error::Error;
use crate::protocol::{Command, Configuration, Event, Role};
use crate::{diag, net, relay, traffic};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Where a host's events go, from any thread.
#[derive(Debug)]
pub struct Outbox {
    writer: Mutex<io::BufWriter<io::Stdout>>,
}

impl Outbox {
    /// Tells an event; it is read soon.
    pub fn tell(&self, event: &Event) {
        self.row(event);
        self.flush();
    }

    /// Tells one of many events: they may wait in a buffer until [`Outbox::tell`] is called.
    pub fn row(&self, event: &Event) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever does not listen any more has closed our standard input too, and that ends us.
        let _ =
            serde_json::to_writer(&mut *writer, event).map_err(io::Error::from).and_then(|()| writer.write_all(b"\n"));
    }

    fn flush(&self) {
        let _ = self.writer.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }
}

/// Does what standard input says until it ends.
///
/// # Errors
/// What stopped the host; it has been told as an event, too.
pub fn serve() -> Result<(), Error> {
    let outbox = Outbox { writer: Mutex::new(io::BufWriter::with_capacity(1 << 16, io::stdout())) };
    let outcome = Inbox::open().and_then(|inbox| play(&inbox, &outbox));
    if let Err(error) = &outcome {
        outbox.tell(&Event::Failed(error.clone()));
    }
    outcome
}

fn play(inbox: &Inbox, outbox: &Outbox) -> Result<(), Error> {
    let Command::Configure(configuration) = inbox.next() else {
        return Err(Error::new(
            "bad-command",
            "the first command is not `configure`",
            "see docs/reference/host-protocol.md",
        ));
    };
    let Configuration { sysctls, experiment, role } = *configuration;
    let sysctls = net::sysctl::apply(&sysctls)?;
    let configured = move || Event::Configured {
        sysctls: sysctls.clone(),
        cc: net::probe::algorithms(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
    };
    let stage = Stage { inbox, outbox, configured: &configured };
    let Stopped { measured, untrustworthy } = match role {
        Role::End { host, sends, background, receives, port } => {
            let part = traffic::Part::new(&host, &sends, background, receives, port);
            let mut stopped = traffic::play(&stage, &experiment, &part)?;
            stopped.measured.extend(net::qdisc::measured(&experiment, &host)?);
            stopped
        }
        Role::Relay { senders, receiver, traces, capture } => {
            relay::carry(&stage, &experiment, &senders, &receiver, &traces, capture.as_deref())?
        }
        Role::Qdiscs { watch } => diag::watch_qdiscs(&stage, &experiment, &watch)?,
    };
    outbox.tell(&Event::Stopped { measured, untrustworthy });
    // The engine has the rows before it lets us go.
    loop {
        if inbox.next() == Command::Clock {
            outbox.tell(&clock_event());
        }
    }
}

fn clock_event() -> Event {
    Event::Clock { monotonic_ns: monotonic_ns() }
}

/// What a role has to deal with.
pub struct Stage<'a> {
    /// Commands.
    pub inbox: &'a Inbox,
    /// Events.
    pub outbox: &'a Outbox,
    configured: &'a dyn Fn() -> Event,
}

/// What a role leaves, besides rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stopped {
    /// What it measured of itself, by names that carry their units.
    pub measured: BTreeMap<String, f64>,
    /// Why the experiment should not be believed.
    pub untrustworthy: Vec<String>,
}

impl Stage<'_> {
    /// Says that all is prepared, waits for the start, and gives the experiment's clock. Its time zero may lie a little
    /// ahead: until then it shows zero.
    ///
    /// # Errors
    /// Another command came.
    pub fn wait_for_start(&self) -> Result<Clock, Error> {
        self.outbox.tell(&(self.configured)());
        loop {
            match self.inbox.next() {
                Command::Start { at_monotonic_ns } => {
                    return Ok(at_monotonic_ns.map_or_else(Clock::starting_now, Clock::starting_at));
                }
                Command::Clock => self.outbox.tell(&clock_event()),
                other => {
                    return Err(Error::new(
                        "bad-command",
                        format!("expected `start`, found {other:?}"),
                        "see docs/reference/host-protocol.md",
                    ));
                }
            }
        }
    }
}
