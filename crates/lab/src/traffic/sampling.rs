//! The sampling thread: samples the connections of the host at regular instants.
//!
//! Instants lie on a grid from the experiment's start, so a slow dump does not shift later ones: instants that have
//! passed meanwhile are skipped and counted. Sampling takes CPU time from the traffic: too much of it makes the
//! experiment untrustworthy.

use crate::clock::{Clock, monotonic_ns};
use crate::diag::{CcInfo, Sampler, Socket};
use crate::error::Error;
use crate::traffic::socket::ports::{Ports, Who};
use crate::traffic::stop_signal::{StopSignal, minimise_timer_slack};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use thalweg_trace::Histogram;
use thalweg_units::{Span, Time};

/// Maximum acceptable CPU share of sampling, as a percentage of one processor.
const CPU_LIMIT_PERCENT: f64 = 20.0;

/// A sample of a connection. Counters have the kernel's widths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) at: Time,
    pub(super) who: Who,
    pub(super) cwnd_packets: u32,
    pub(super) ssthresh_packets: Option<u32>,
    pub(super) inflight_packets: u32,
    pub(super) ca_state: u8,
    pub(super) srtt_us: Option<u32>,
    pub(super) min_rtt_us: Option<u32>,
    pub(super) segments: u32,
    pub(super) retransmits: u32,
    pub(super) marked_segments: u32,
    pub(super) pacing_rate_bps: Option<u64>,
    pub(super) delivery_rate_bps: Option<u64>,
    pub(super) acked_bytes: u64,
    pub(super) cc: CcInfo,
}

#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Samples in order of time.
    pub(super) rows: Vec<Sample>,
    pub(super) measured: BTreeMap<String, f64>,
    /// Reason why sampling could have changed the result; `None` if it could not.
    pub(super) untrustworthy: Option<String>,
}

#[derive(Debug)]
pub(super) struct Sampling {
    stop: StopSignal,
    thread: JoinHandle<Result<Samples, Error>>,
}

#[derive(Debug)]
pub(super) struct Instants {
    pub(super) clock: Clock,
    pub(super) interval: Span,
    /// The last possible instant; `None` without a fixed end.
    pub(super) last: Option<Time>,
}

impl Sampling {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system refuses to create a thread or a descriptor.
    pub(super) fn start(sampler: Sampler, ports: Arc<Ports>, instants: Instants) -> Result<Sampling, Error> {
        let stop = StopSignal::new()?;
        let stop_of_thread = stop.clone();
        let thread = thread::Builder::new()
            .name("samples".to_owned())
            .spawn(move || take(sampler, &ports, &instants, &stop_of_thread))
            .map_err(|error| {
                Error::new(
                    "no-resources",
                    format!("cannot start a thread: {error}"),
                    "close other programs and try again",
                )
            })?;
        Ok(Sampling { stop, thread })
    }

    /// Stops the thread; returns its results.
    ///
    /// # Errors
    /// If a dump failed.
    pub(super) fn finish(self) -> Result<Samples, Error> {
        self.stop.set();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn take(mut sampler: Sampler, ports: &Ports, instants: &Instants, stop: &StopSignal) -> Result<Samples, Error> {
    let &Instants { clock, interval, last } = instants;
    minimise_timer_slack();
    let cpu_before = cpu_ns();
    let (mut samples, mut seen, mut taken) = (Samples::default(), Vec::new(), 0u64);
    let (mut intervals, mut latest) = (Histogram::default(), None::<Time>);
    let (mut instant, mut now) = (Time::ZERO, Time::ZERO);
    let mut read_ns = monotonic_ns();
    while last.is_none_or(|last| instant <= last) && stop.sleep_from(read_ns, Some(clock.monotonic_ns(instant))) {
        now = clock.now();
        sampler.dump(&mut |socket| {
            if let Some(who) = ports.owner(socket.local.port(), socket.remote.ip()) {
                seen.push(Sample::new(now, who, socket));
            }
        })?;
        // A dump may list a connection twice if others open or close at the same time.
        seen.sort_unstable_by_key(|sample| sample.who);
        seen.dedup_by_key(|sample| sample.who);
        samples.rows.append(&mut seen);
        taken += 1;
        if let Some(latest) = latest {
            intervals.add(now.since(latest));
        }
        latest = Some(now);
        read_ns = monotonic_ns();
        let passed = clock.at(read_ns).since(instant).0 / interval.0.max(1);
        instant += Span(interval.0.saturating_mul(passed + 1));
    }
    // A thread that is stopped before it wakes up has skipped the last instants.
    let due = match last {
        Some(last) if clock.now() >= last => last.0 / interval.0.max(1) + 1,
        _ => instant.0 / interval.0.max(1),
    };
    let missed = due.saturating_sub(taken);
    let lasted = now.since(Time::ZERO).0.max(interval.0) as f64;
    let cpu_percent = (cpu_ns() - cpu_before) as f64 / lasted * 100.0;
    let measured = [
        ("sampling_cpu_percent", Some(cpu_percent)),
        ("samples_taken", Some(taken as f64)),
        ("samples_late", Some(missed as f64)),
        ("sampling_interval_p99_us", intervals.quantile_us(990)),
    ];
    samples.measured = measured.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    samples.untrustworthy = doubt(cpu_percent, lasted);
    Ok(samples)
}

/// Returns the reason why sampling could have changed the result; `lasted` is in nanoseconds.
fn doubt(cpu_percent: f64, lasted: f64) -> Option<String> {
    // In a shorter experiment, the thread's start dominates the CPU share.
    const MIN_NS: f64 = 1e9;
    (cpu_percent > CPU_LIMIT_PERCENT && lasted >= MIN_NS).then(|| {
        format!(
            "sampling took {cpu_percent:.0} % of a processor from the traffic (limit {CPU_LIMIT_PERCENT:.0} %): choose \
             a longer sample_interval"
        )
    })
}

fn cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

impl Sample {
    fn new(at: Time, who: Who, socket: &Socket) -> Sample {
        let info = &socket.info;
        // The kernel stores these values in 32 bits.
        let narrow = |value: u64| value as u32;
        Sample {
            at,
            who,
            cwnd_packets: narrow(info.cwnd_packets),
            ssthresh_packets: info.ssthresh_packets.map(narrow),
            inflight_packets: narrow(info.inflight_packets),
            ca_state: info.ca_state,
            srtt_us: info.srtt_us.map(narrow),
            min_rtt_us: info.min_rtt_us.map(narrow),
            segments: narrow(info.segments),
            retransmits: narrow(info.retransmits),
            marked_segments: narrow(info.marked_segments),
            pacing_rate_bps: info.pacing_rate_bps,
            delivery_rate_bps: info.delivery_rate_bps,
            acked_bytes: info.acked_bytes,
            cc: socket.cc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_a_reason_if_it_takes_much_of_a_processor_for_a_second_or_more() {
        let reason = doubt(34.6, 1.5e9).unwrap();
        assert!(reason.starts_with("sampling took 35 % of a processor from the traffic (limit 20 %)"), "{reason}");
        assert_eq!((doubt(20.0, 1.5e9), doubt(90.0, 0.5e9)), (None, None));
    }
}
