//! The router of experiments in which the kernel's queue disciplines carry the packets.
//!
//! It reads the counters of the queue disciplines at the experiment's interval, and runs the scheduled commands that
//! change the queue disciplines.
//!
//! The capacity of a link is computed from the plan, not from the times at which commands took effect. The netem that
//! produces random losses must have no queue below it, because netem counts the drops of its child as its own.

use super::qdiscs::{Count, Counters};
use crate::clock::{Clock, monotonic_ns, timespec};
use crate::error::Error;
use crate::protocol::{Command, HostEvent, Qdisc, Qdiscs, QueueReport};
use crate::stage::{HostReport, Stage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::process;
use thalweg_link::Link;
use thalweg_plan::plan::{self, Capacity, Experiment};
use thalweg_trace::QueueCounters;
use thalweg_units::{Span, Time};

/// Tolerated lateness of a change of the path: the default sampling interval.
const LATE: Span = Span(10_000_000);

/// Runs the router until the command `stop`.
///
/// # Errors
/// If a link of the plan is invalid, the counters of a queue discipline cannot be read, a scheduled command fails, or
/// an unexpected command arrives.
pub fn watch_qdiscs(stage: &Stage<'_>, experiment: &Experiment, watch: &Qdiscs) -> Result<HostReport, Error> {
    let mut watcher = Watcher::open(experiment, watch)?;
    let clock = stage.wait_for_start()?;
    let interval = experiment.sample_interval_ns;
    let mut next_sample = (interval > Span::ZERO).then_some(Time::ZERO);
    let cpu_before = cpu_time();
    // Reading the clock can be expensive, so the latest reading is used again where possible.
    let mut read_ns = monotonic_ns();
    loop {
        let next_change = watcher.changes.front().map(|change| change.at);
        let wake = next_sample.into_iter().chain(next_change).min();
        let wake_ns = wake.map(|time| clock.monotonic_ns(time));
        let is_called = wait_until(stage, read_ns, wake_ns)?;
        if is_called && is_stopped(stage)? {
            break;
        }
        let now_ns = wake_ns.filter(|_| !is_called).unwrap_or_else(monotonic_ns);
        let is_due = |time: Time| clock.monotonic_ns(time) <= now_ns;
        read_ns = now_ns;
        if next_change.is_some_and(is_due) {
            watcher.change(&clock)?;
            read_ns = monotonic_ns();
        }
        if let Some(due) = next_sample.filter(|due| is_due(*due)) {
            let now = watcher.sample(&clock)?;
            // If a command takes longer than an interval, the missed samples are skipped.
            let intervals = 1 + now.0.saturating_sub(due.0) / interval.0;
            next_sample = Some(due + Span(interval.0.saturating_mul(intervals)));
            read_ns = clock.monotonic_ns(now);
        }
    }
    watcher.sampling = Span(cpu_time().saturating_sub(cpu_before));
    watcher.sample(&clock)?;
    for row in watcher.rows.drain(..) {
        stage.events.buffer(&HostEvent::Queue(Box::new(row)));
    }
    Ok(watcher.stopped(clock.now()))
}

/// Waits until a command may have arrived (true) or the time is reached (false), never earlier. `now_ns` is the latest
/// reading of the clock.
fn wait_until(stage: &Stage<'_>, now_ns: u64, at_monotonic_ns: Option<u64>) -> Result<bool, Error> {
    let remaining = at_monotonic_ns.map(|at| at.saturating_sub(now_ns));
    let timeout = remaining.map(timespec);
    match poll(&mut [PollFd::from_borrowed_fd(stage.commands.wakeup(), PollFlags::IN)], timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(Error::new(
            "no-resources",
            format!("the host cannot wait for commands: {errno}"),
            "close other programs and try again",
        )),
    }
}

/// Handles the pending commands up to `stop`; returns whether `stop` was among them.
fn is_stopped(stage: &Stage<'_>) -> Result<bool, Error> {
    while let Some(command) = stage.commands.try_next() {
        match command {
            Command::Stop => return Ok(true),
            Command::Over { .. } => {}
            other => {
                return Err(Error::new(
                    "bad-command",
                    format!("expected `over` or `stop`, found {other:?}"),
                    "see docs/reference/host-protocol.md",
                ));
            }
        }
    }
    Ok(false)
}

struct Watcher {
    counters: Counters,
    directions: Vec<Direction>,
    /// Scheduled commands that have not run yet, in order of time.
    changes: VecDeque<Change>,
    rows: Vec<QueueReport>,
    /// CPU time of this thread.
    sampling: Span,
    /// Maximum lateness of commands; `None` if no command has run.
    lateness: Option<Span>,
}

struct Direction {
    is_forward: bool,
    /// Index of the counters of the queue.
    queue: usize,
    /// Index of the counters of the netem with random losses; `None` without random losses.
    loss: Option<usize>,
    policer: Option<Policer>,
    /// A link without packets, for computing the capacity.
    link: Option<Link<u64>>,
}

/// Counter of a policer's drops.
struct Policer {
    /// Index of the counters.
    place: usize,
    /// Whether the queue is the policer's child, so that the policer's drops include those of the queue.
    has_queue: bool,
    /// Whether the policer is also the queue.
    is_queue: bool,
    dropped: u64,
}

impl Policer {
    /// Updates the drops from the counters of the policer's discipline and of the queue.
    fn follow(&mut self, total: u64, queue: u64) {
        let below = if self.has_queue { queue } else { 0 };
        // `total` may lag: a discipline such as codel defers the report of drops to its parent while it is empty.
        self.dropped = self.dropped.max(total.saturating_sub(below));
    }
}

struct Change {
    at: Time,
    words: Vec<String>,
}

impl Watcher {
    fn open(experiment: &Experiment, watch: &Qdiscs) -> Result<Watcher, Error> {
        let mut wanted = Vec::new();
        let mut directions = Vec::new();
        let links = [(true, &watch.forward, &experiment.forward), (false, &watch.reverse, &experiment.reverse)];
        for (is_forward, qdisc, plan) in links {
            let Some(Qdisc { queue, loss, policer, rates }) = qdisc else { continue };
            let mut want = |name: &(String, String)| {
                wanted.push(name.clone());
                wanted.len() - 1
            };
            let policer = policer.as_ref().map(|name| Policer {
                place: want(name),
                has_queue: name.0 == queue.0 && name.1 != queue.1,
                is_queue: name == queue,
                dropped: 0,
            });
            let (queue, loss) = (want(queue), loss.as_ref().map(&mut want));
            directions.push(Direction { is_forward, queue, loss, policer, link: idle_link(plan, rates)? });
        }
        let mut changes: Vec<Change> = Vec::new();
        for (at, words) in &watch.at {
            changes.push(Change { at: Time::ZERO + *at, words: words.clone() });
        }
        changes.sort_by_key(|change| change.at);
        Ok(Watcher {
            counters: Counters::open(&wanted)?,
            directions,
            changes: changes.into(),
            rows: Vec::new(),
            sampling: Span::ZERO,
            lateness: None,
        })
    }

    fn sample(&mut self, clock: &Clock) -> Result<Time, Error> {
        self.counters.read()?;
        let now = clock.now();
        for direction in &mut self.directions {
            let mut queue = self.counters.count(direction.queue);
            if let Some(policer) = &mut direction.policer {
                policer.follow(self.counters.count(policer.place).dropped_packets, queue.dropped_packets);
                if policer.is_queue {
                    (queue.dropped_packets, queue.limit_drops) = (0, Some(0));
                }
            }
            let loss = direction.loss.map_or(Count::default(), |place| self.counters.count(place));
            let capacity = direction.link.as_ref().and_then(|link| link.capacity_bytes(now));
            let counters = QueueCounters {
                backlog_bytes: queue.backlog_bytes,
                backlog_packets: queue.backlog_packets,
                dropped_packets: queue.dropped_packets,
                early_drops: queue.early_drops(),
                policed_packets: Some(direction.policer.as_ref().map_or(0, |policer| policer.dropped)),
                lost_packets: loss.dropped_packets,
                marked_packets: queue.marked_packets,
                sent_packets: queue.sent_packets,
                sent_bytes: queue.sent_bytes,
                sojourn_sum_us: None,
                capacity_bytes: capacity.map(|bytes| bytes.0),
            };
            self.rows.push(QueueReport { is_forward: direction.is_forward, t_us: now.as_micros(), counters });
        }
        Ok(now)
    }

    fn change(&mut self, clock: &Clock) -> Result<(), Error> {
        let Some(change) = self.changes.pop_front() else { return Ok(()) };
        let line = change.words.join(" ");
        let failed = |reason: &dyn std::fmt::Display| {
            Error::new(
                "command-failed",
                format!("`{line}`, due {} after the start, failed: {reason}", change.at.since(Time::ZERO)),
                "run it in the router's namespace, as in commands.log, to see the cause",
            )
        };
        let (program, arguments) = change.words.split_first().ok_or_else(|| failed(&"the command is empty"))?;
        let output = process::Command::new(program).args(arguments).stdin(process::Stdio::null()).output();
        let output = output.map_err(|error| failed(&error))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(failed(&format!("{} ({})", stderr.trim(), output.status)));
        }
        let late = clock.now().since(change.at);
        self.lateness = self.lateness.max(Some(late));
        Ok(())
    }

    fn stopped(&self, duration: Time) -> HostReport {
        let mut stopped = HostReport::default();
        let share = self.sampling.0 as f64 / duration.0.max(1) as f64;
        stopped.measured.insert("qdisc_sampling_cpu_percent".to_owned(), 100.0 * share);
        if let Some(late) = self.lateness {
            stopped.measured.insert("qdisc_change_lateness_worst_us".to_owned(), late.as_micros() as f64);
            if late > LATE {
                let reason = format!("a change of the path took effect {late} after it was due");
                stopped.untrustworthy.push(reason);
            }
        }
        stopped
    }
}

/// Returns a link of the plan that carries no packets, with these rates if its capacity is a profile; `None` for a
/// capacity from a trace.
fn idle_link(plan: &plan::Link, rates: &[plan::Step]) -> Result<Option<Link<u64>>, Error> {
    let capacity = match &plan.capacity {
        Capacity::Trace { .. } => return Ok(None),
        Capacity::Profile {} => Capacity::Steps { steps: rates.to_vec() },
        other => other.clone(),
    };
    let bad = |error| {
        Error::new(
            "bad-plan",
            format!("a link of the plan is invalid: {error}"),
            "create the plan again: thalweg run FILE",
        )
    };
    // Only the capacity of this link is used, so it needs no queue.
    let plan = plan::Link { capacity, queue: plan::Queue::Fifo {}, profile: None, ..plan.clone() };
    Link::new(&plan, &plan::Traces::default(), 0).map(Some).map_err(bad)
}

/// Returns the CPU time of this thread in nanoseconds.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
