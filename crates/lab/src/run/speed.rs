//! Checks that this machine is fast enough for an experiment: a short transfer over the same kind of network measures
//! the rate that the machine carries.
//!
//! A path that the machine cannot saturate would look like a path of a lower rate, with a queue that never fills. Such
//! an experiment is rejected.

use super::network::run_on;
use super::{Failure, HostSetup, Job, Rows};
use crate::error::Error;
use crate::net::{LinkKind, probe};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use thalweg_plan::plan::{
    Buffer, Capacity, Choices, Emulator, Experiment, Flow, Generator, Host, Link, Load, Loss, Queue, Step, Traces,
};
use thalweg_trace::{Memory, QueueRow};
use thalweg_units::{Bytes, Probability, Rate, Span, Time};

/// Maximum rate that needs no test.
const EASY: Rate = Rate::from_mbps(50);

/// Percentage of the measured rate that an experiment may use. The rest is a margin for its samples and flows, and for
/// other programs of the machine.
const USABLE_PERCENT: u64 = 90;

/// Duration of a test, including the warm-up, whose packets do not count.
#[derive(Clone, Copy, Debug)]
struct Length {
    test: Span,
    warm_up: Span,
}

const ON_HOSTS: Length = Length { test: Span::from_millis(800), warm_up: Span::from_millis(200) };

/// Length of the test in guests, whose CPU QEMU may emulate.
const IN_GUESTS: Length = Length { test: Span::from_millis(2500), warm_up: Span::from_millis(1500) };

/// Rate of the test's link, above what a machine can carry.
const NEVER_BUSY: Rate = Rate::from_mbps(1_000_000);

/// Window over which the rate of a trace is measured, because the queue smooths shorter peaks.
const WINDOW_MS: u64 = 100;

/// Number of bits that one delivery opportunity of a trace carries.
const OPPORTUNITY_BITS: u64 = 1500 * 8;

/// Checks that this machine carries the highest rate of an experiment's path.
///
/// # Errors
/// `too-fast` if it does not, or the error of the test.
pub fn check(job: &Job<'_>, setup: HostSetup<'_>, link: LinkKind) -> Result<(), Failure> {
    let Some(asked) = asked(job.experiment, job.traces).filter(|rate| *rate > EASY) else { return Ok(()) };
    let length = if setup.guests.is_some() { IN_GUESTS } else { ON_HOSTS };
    let carried = carried(job, setup, link, length)?;
    compare(asked, carried, length, link, probe::is_realtime_allowed()).map_err(Failure::from)
}

fn compare(asked: Rate, carried: Rate, length: Length, link: LinkKind, is_realtime: bool) -> Result<(), Error> {
    let usable = carried.scale(USABLE_PERCENT, 100);
    if asked <= usable {
        return Ok(());
    }
    let [asked, carried, usable] = [asked, carried, usable].map(|rate| rate.0 / 1_000_000);
    let message = format!(
        "the path's rate reaches {asked} Mbit/s, but this machine carried {carried} Mbit/s in a test of {} ms, of \
         which {USABLE_PERCENT} % are usable",
        length.test.as_millis()
    );
    let root =
        if link == LinkKind::Relay && !is_realtime { "run as root, so that the relay gets SCHED_FIFO; " } else { "" };
    let hint = format!("{root}close other programs, lower the rate to {usable} Mbit/s, or use --engine sim");
    Err(Error::new("too-fast", message, hint))
}

/// Returns the highest rate that the machine must carry: that of the forward link, plus that of the reverse link if
/// there is up traffic. Unlimited links do not count; `None` if no link remains.
fn asked(experiment: &Experiment, traces: &Traces) -> Option<Rate> {
    let is_two_way = experiment.has_up_traffic();
    let down = highest(&experiment.forward, traces);
    let up = highest(&experiment.reverse, traces).filter(|_| is_two_way);
    down.map(|down| Rate(down.0.saturating_add(up.map_or(0, |up| up.0)))).or(up)
}

/// Returns the highest rate of a link; `None` if it has no limit.
fn highest(link: &Link, traces: &Traces) -> Option<Rate> {
    match &link.capacity {
        Capacity::Unlimited => None,
        Capacity::Steps { steps } => steps.iter().map(|step| step.rate_bps).max(),
        Capacity::Trace { trace } => traces.opportunities.get(trace).map(|times| peak(times)),
        Capacity::Profile {} => {
            let profile = traces.profiles.get(link.profile.as_ref()?)?;
            profile.points.iter().filter_map(|point| point.rate_bps).max()
        }
    }
}

/// Returns the highest rate of a trace over [`WINDOW_MS`], including windows across the point where it repeats.
fn peak(times_ms: &[u64]) -> Rate {
    let period = times_ms.last().copied().unwrap_or_default();
    let again = times_ms.iter().map(|time| time + period).take_while(|time| *time < period + WINDOW_MS);
    let times: Vec<u64> = times_ms.iter().copied().chain(again).collect();
    let mut first = 0;
    let mut most = 0;
    for (last, time) in times.iter().enumerate() {
        while times[first] + WINDOW_MS <= *time {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    Rate(most as u64 * OPPORTUNITY_BITS * 1000 / WINDOW_MS)
}

/// Returns the rate that this machine carries over this kind of link with these offloads. Tests each combination
/// once per process.
fn carried(job: &Job<'_>, setup: HostSetup<'_>, link: LinkKind, length: Length) -> Result<Rate, Failure> {
    static KNOWN: Mutex<BTreeMap<(bool, bool), Rate>> = Mutex::new(BTreeMap::new());
    let key = (link == LinkKind::Relay, job.experiment.engine.offloads);
    // Locked during the test, because two concurrent tests would slow each other down.
    let mut rates = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rate) = rates.get(&key) {
        return Ok(*rate);
    }
    let rate = measure(job, setup, link, length)?;
    rates.insert(key, rate);
    Ok(rate)
}

fn measure(job: &Job<'_>, setup: HostSetup<'_>, link: LinkKind, length: Length) -> Result<Rate, Failure> {
    let usable = setup.guests.map_or_else(probe::usable_algorithms, |guests| Ok(guests.algorithms().to_vec()))?;
    let cc = ["cubic", "reno"].into_iter().find(|name| usable.iter().any(|usable| usable == name)).unwrap_or("bbr");
    let experiment = test(cc, length, link, job.experiment.engine.offloads);
    let traces = Traces::default();
    let (title, why) = (format!("speed test before experiment {}", job.id), "the experiment uses it too");
    let job = Job {
        experiment: &experiment,
        id: "speed-test",
        traces: &traces,
        capture: None,
        programs: None,
        session: None,
        ..*job
    };
    let mut memory = Memory::default();
    let mut rows = Rows::new(&experiment, &mut memory);
    run_on(link, why, &title, &job, setup, &mut |event| rows.take(event))?;
    Ok(rate_of(&memory.queue, length))
}

/// Returns the rate at which packets left the forward queue after the warm-up.
fn rate_of(rows: &[QueueRow], length: Length) -> Rate {
    let after_warm_up = || rows.iter().filter(|row| row.link == "forward" && row.t_us >= length.warm_up.as_micros());
    let first = after_warm_up().min_by_key(|row| row.t_us);
    let last = after_warm_up().max_by_key(|row| row.t_us);
    let (Some(first), Some(last)) = (first, last) else { return Rate::ZERO };
    Rate::of(Bytes(last.sent_bytes - first.sent_bytes), Span::from_micros(last.t_us - first.t_us))
}

fn test(cc: &str, length: Length, link: LinkKind, offloads: bool) -> Experiment {
    let path = |capacity| Link {
        capacity,
        buffer: Buffer::Bytes { bytes: Bytes(100_000_000) },
        queue: Queue::Fifo {},
        loss: Loss::Bernoulli { ratio: Probability::NEVER },
        duplicate: Probability::NEVER,
        delay_ns: Span::ZERO,
        jitter_ns: Span::ZERO,
        allow_reordering: false,
        reorder: Probability::NEVER,
        reorder_delay_ns: Span::ZERO,
        policer: None,
        aggregation: None,
        ack_thinning: None,
        offloads: false,
        profile: None,
    };
    let host = Host {
        sndbuf_max_bytes: Bytes(16_000_000),
        rcvbuf_max_bytes: Bytes(16_000_000),
        delay_jitter_ns: Span::ZERO,
        cpu: None,
        second_cpu: false,
        co_tenants: 0,
        kernel: None,
        offloads: false,
        interrupt_coalescing_ns: Span::ZERO,
        qdisc: None,
    };
    let flow = Flow::new("bulk", cc, Load::Unlimited);
    Experiment {
        experiment: 0,
        repetition: 0,
        sweep: BTreeMap::new(),
        seed: 1,
        duration_ns: Some(length.test),
        sample_interval_ns: Span::from_millis(10),
        start_jitter_ns: Span::ZERO,
        ipv6: false,
        rtt_ns: Span::ZERO,
        forward: path(Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: NEVER_BUSY }] }),
        reverse: path(Capacity::Unlimited),
        hosts: ["sender", "receiver"].map(|name| (name.to_owned(), host.clone())).into(),
        flows: vec![flow],
        background: Vec::new(),
        engine: Choices {
            link: if link == LinkKind::Relay { Emulator::Relay } else { Emulator::Netem },
            traffic: Generator::Builtin,
            offloads,
            record: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_rate_of_steps_is_the_highest_one_at_any_position() {
        let step = |at: u64, rate| Step { at_ns: Time(at), rate_bps: Rate(rate) };
        let steps = Capacity::Steps { steps: vec![step(0, 10), step(1, 30), step(2, 20)] };
        let mut link = test("cubic", ON_HOSTS, LinkKind::Netem, false).reverse;
        assert_eq!(highest(&link, &Traces::default()), None);
        link.capacity = steps;
        assert_eq!(highest(&link, &Traces::default()), Some(Rate(30)));
    }

    #[test]
    fn the_peak_rate_of_a_trace_is_that_of_its_busiest_100_ms() {
        // One opportunity each millisecond is 12 Mbit/s. 300 opportunities within a millisecond equal 36 Mbit/s over
        // 100 ms.
        let steady: Vec<u64> = (1..=1000).collect();
        assert_eq!(peak(&steady), Rate::from_mbps(12));
        let burst: Vec<u64> = std::iter::repeat_n(500, 300).chain([1000]).collect();
        assert_eq!(peak(&burst), Rate::from_mbps(36));
        let across_the_seam: Vec<u64> = std::iter::repeat_n(10, 150).chain(std::iter::repeat_n(1000, 150)).collect();
        assert_eq!(peak(&across_the_seam), Rate::from_mbps(36));
        assert_eq!(peak(&[]), Rate::ZERO);
    }

    #[test]
    fn a_path_faster_than_the_machine_is_rejected_with_a_remedy() {
        let carried = Rate::from_mbps(1000);
        assert_eq!(compare(Rate::from_mbps(900), carried, ON_HOSTS, LinkKind::Relay, false), Ok(()));
        let error = compare(Rate::from_mbps(901), carried, ON_HOSTS, LinkKind::Relay, false).unwrap_err();
        assert_eq!(error.code, "too-fast");
        assert!(error.message.contains("901 Mbit/s") && error.message.contains("1000 Mbit/s"), "{error}");
        assert!(error.hint.contains("as root") && error.hint.contains("900 Mbit/s"), "{error}");
        let as_root = compare(Rate::from_mbps(901), carried, ON_HOSTS, LinkKind::Relay, true).unwrap_err();
        assert!(!as_root.hint.contains("root"), "{as_root}");
    }

    #[test]
    fn the_warm_up_is_excluded() {
        let row = |link, t_us, sent_bytes| QueueRow {
            experiment: 0,
            repetition: 0,
            link,
            t_us,
            backlog_bytes: 0,
            backlog_packets: 0,
            dropped_packets: 0,
            early_drops: None,
            policed_packets: None,
            lost_packets: 0,
            marked_packets: 0,
            sent_packets: 0,
            sent_bytes,
            sojourn_sum_us: None,
            capacity_bytes: None,
        };
        let rows = [row("forward", 0, 0), row("forward", 200_000, 1_000), row("reverse", 300_000, 9_000_000)];
        let rows = [rows.as_slice(), &[row("forward", 800_000, 75_001_000)]].concat();
        assert_eq!(rate_of(&rows, ON_HOSTS), Rate::from_mbps(1000));
        assert_eq!(rate_of(&rows[..1], ON_HOSTS), Rate::ZERO);
    }
}
