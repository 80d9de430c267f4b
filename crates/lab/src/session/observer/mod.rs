//! The host that observes a session: its flows, and the throughput of each.
//!
//! ```text
//!  meter       packets at both ends: bytes, losses, delays of TCP and UDP flows
//!  sockets     inet_diag at both ends: congestion window, round-trip times, retransmissions of TCP connections
//! ```
//!
//! A row of `flows` is a connection. Its flow is named after the protocol and the smaller of the two ports, which is
//! usually that of the service: `tcp-5201`. The data of a connection is that of its busier direction, and its samples
//! are those of the socket at the sender of that direction.

mod report;
mod sockets;

use crate::clock::Clock;
use crate::error::Error;
use crate::meter::{Meter, Settings, TapPoint};
use crate::net::HOST_INTERFACE;
use crate::protocol::{HostEvent, StatusReport};
use crate::stage::{HostReport, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use sockets::Sockets;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use thalweg_plan::plan::Experiment;
use thalweg_units::{Span, Time};

/// Minimum interval between two samples, because a session may have many connections and be long.
const MIN_INTERVAL: Span = Span::from_millis(50);

const STATUS: Span = Span::from_secs(1);

/// Observes the network namespaces of these names, the receiver last, until the command `stop`.
///
/// # Errors
/// If the kernel refuses an interface that observation requires, or a command other than `start` or `clock` arrives
/// first.
pub fn observe(
    stage: &Stage<'_>,
    experiment: &Experiment,
    hosts: &[String],
    receiver: IpAddr,
) -> Result<HostReport, Error> {
    let files: Vec<PathBuf> = hosts.iter().map(|host| PathBuf::from(format!("/run/netns/{host}"))).collect();
    let mut sockets = files.iter().map(|file| Sockets::open(file)).collect::<Result<Vec<_>, _>>()?;
    let clock = stage.wait_for_start()?;
    let point = |file: &PathBuf| TapPoint { namespace: Some(file.clone()), interface: HOST_INTERFACE.to_owned() };
    let points: Vec<TapPoint> = files.iter().map(point).collect();
    let meter = Meter::start(&points, Settings { clock, interval: Span::ZERO, only: None, until: None })?;
    let interval = experiment.sample_interval_ns.max(MIN_INTERVAL);
    let mut status = Status::new(receiver);
    let (mut sample_at, mut status_at) = (Time::ZERO, Time::ZERO + STATUS);
    loop {
        let now = clock.now();
        if now >= sample_at {
            sockets.iter_mut().try_for_each(|sockets| sockets.sample(now))?;
            sample_at = clock.now().max(sample_at) + interval;
        }
        if now >= status_at {
            stage.events.send(&HostEvent::Status(Box::new(status.next(now, &meter))));
            status_at += STATUS;
        }
        if is_stopped(stage, &clock, sample_at.min(status_at)) {
            break;
        }
    }
    let now = clock.now();
    sockets.iter_mut().try_for_each(|sockets| sockets.sample(now))?;
    let metered = meter.stop();
    let missed = metered.missed_packets;
    report::report(stage.events, receiver, metered.flows, &mut sockets);
    let measured = [("meter_missed_packets".to_owned(), missed as f64)];
    let reason = format!("the meter missed {missed} packets: bytes and losses of flows are wrong");
    Ok(HostReport { measured: measured.into(), untrustworthy: (missed > 0).then_some(reason).into_iter().collect() })
}

/// Waits until a command arrives or the time is reached; returns whether the command is `stop`.
fn is_stopped(stage: &Stage<'_>, clock: &Clock, until: Time) -> bool {
    let wait = Duration::from_nanos(until.since(Time::ZERO).0.saturating_sub(clock.now().since(Time::ZERO).0));
    let timeout = rustix::event::Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    let wakeup = stage.commands.wakeup();
    let _ = poll(&mut [PollFd::from_borrowed_fd(wakeup, PollFlags::IN)], Some(&timeout));
    stage.commands.is_stopped()
}

struct Status {
    receiver: IpAddr,
    /// Smallest one-way delays so far, forward and reverse: estimates for the empty path. The plan's delays are not
    /// used, because netem has the propagation delays of both directions on the reverse path.
    min_us: [f64; 2],
    at: Time,
    before: [Totals; 2],
}

#[derive(Clone, Copy, Default)]
struct Totals {
    bytes: u64,
    entered: u64,
    lost: u64,
    delayed: u64,
    delay_us: f64,
}

impl Status {
    fn new(receiver: IpAddr) -> Status {
        Status { receiver, min_us: [f64::INFINITY; 2], at: Time::ZERO, before: [Totals::default(); 2] }
    }

    fn next(&mut self, now: Time, meter: &Meter) -> StatusReport {
        let mut totals = [Totals::default(); 2];
        for row in meter.rows() {
            let way = usize::from(row.key.to.ip() != self.receiver);
            let total = &mut totals[way];
            total.bytes += row.delivered_ip_bytes;
            total.entered += row.entered_packets;
            total.lost += row.lost_packets;
            total.delayed += row.delays.count();
            total.delay_us += row.delays.mean_us().unwrap_or(0.0) * row.delays.count() as f64;
            self.min_us[way] = self.min_us[way].min(row.delays.min_us().unwrap_or(f64::INFINITY));
        }
        let elapsed_s = now.since(self.at).as_secs_f64();
        // The direction that carries more bytes is assumed to be the one with a queue.
        let bytes = |way: usize| totals[way].bytes.saturating_sub(self.before[way].bytes);
        let way = usize::from(bytes(1) > bytes(0));
        let (total, before) = (totals[way], self.before[way]);
        let delayed = total.delayed.saturating_sub(before.delayed);
        let entered = total.entered.saturating_sub(before.entered);
        let delay_us = (delayed > 0).then(|| (total.delay_us - before.delay_us) / delayed as f64);
        let lost = total.lost.saturating_sub(before.lost);
        let status = StatusReport {
            t_us: now.as_micros(),
            rate_bps: [bytes(0), bytes(1)].map(|bytes| (bytes as f64 * 8.0 / elapsed_s.max(1e-6)) as u64),
            queue_us: delay_us.map(|delay| (delay - self.min_us[way]).max(0.0)),
            loss_percent: (entered > 0).then(|| 100.0 * lost as f64 / entered as f64),
        };
        (self.at, self.before) = (now, totals);
        status
    }
}
