//! Prometheus metrics: histograms and counters of the rows, per congestion control, and the state of the recorder.
//!
//! Units are the base units of Prometheus, seconds and bytes, so goodput is in bytes per second.

use super::snapshot::{Counters, Program, Snapshot};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder};

/// Bucket bounds of retransmit ratios. Zero has a separate bucket.
const RATIOS: [f64; 10] = [0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

/// Counters and histograms of rows.
pub struct Metrics {
    registry: Registry,
    pub(super) goodput: HistogramVec,
    pub(super) completion_time: HistogramVec,
    pub(super) transfer_size: HistogramVec,
    pub(super) rtt_min: HistogramVec,
    pub(super) rtt_smoothed: HistogramVec,
    pub(super) retransmit_ratio: HistogramVec,
    pub(super) connection_size: HistogramVec,
    pub(super) closed: IntCounterVec,
    pub(super) cpu_limited: IntCounterVec,
    pub(super) sent: IntCounterVec,
    pub(super) acked: IntCounterVec,
    pub(super) received: IntCounterVec,
    pub(super) retransmitted: IntCounterVec,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Returns metrics with all counters at zero.
    pub fn new() -> Metrics {
        let registry = Registry::new();
        let histogram = |name: &str, about: &str, buckets: Vec<f64>, labels: &[&str]| {
            let options = HistogramOpts::new(format!("thalweg_{name}"), about).buckets(buckets);
            registered(&registry, HistogramVec::new(options, labels))
        };
        let counter = |name: &str, about: &str, labels: &[&str]| {
            registered(&registry, IntCounterVec::new(Opts::new(format!("thalweg_{name}_total"), about), labels))
        };
        // 100 kbit/s to 10 Gbit/s.
        let rates: Vec<f64> = steps(5, 10).into_iter().map(|bps| bps / 8.0).collect();
        let (cc, cc_size) = (&["cc"][..], &["cc", "size"][..]);
        Metrics {
            goodput: histogram("transfer_goodput_bytes_per_second", "Goodput of transfers.", rates, cc_size),
            completion_time: histogram(
                "transfer_duration_seconds",
                "Completion time of transfers.",
                steps(-3, 3),
                cc_size,
            ),
            transfer_size: histogram("transfer_size_bytes", "Sizes of transfers.", steps(2, 10), cc),
            rtt_min: histogram("connection_rtt_min_seconds", "Smallest RTT of closed connections.", steps(-4, 1), cc),
            rtt_smoothed: histogram(
                "connection_rtt_smoothed_seconds",
                "Last smoothed RTT of closed connections.",
                steps(-4, 1),
                cc,
            ),
            retransmit_ratio: histogram(
                "connection_retransmit_ratio",
                "Share of data segments that were retransmissions, of closed connections that sent data.",
                RATIOS.to_vec(),
                cc,
            ),
            connection_size: histogram(
                "connection_acked_bytes",
                "Bytes acknowledged on each closed connection.",
                steps(2, 10),
                cc,
            ),
            closed: counter(
                "connections_closed",
                "Recorded connections that have closed, by type of close.",
                &["cc", "close"],
            ),
            cpu_limited: counter("connections_cpu_limited", "Closed BBR connections that were short of CPU.", cc),
            sent: counter("sent_bytes", "Payload sent on closed connections, including retransmissions.", cc),
            acked: counter("acked_bytes", "Payload acknowledged on closed connections.", cc),
            received: counter("received_bytes", "Payload received on closed connections.", cc),
            retransmitted: counter("retransmitted_bytes", "Payload retransmitted on closed connections.", cc),
            registry,
        }
    }

    /// Formats these metrics, the state of recording and the metrics of `others` as Prometheus text.
    pub fn render(&self, snapshot: &Snapshot, others: Vec<MetricFamily>) -> String {
        let mut families = self.registry.gather();
        families.extend(recording(snapshot).gather());
        // The encoder rejects families without samples.
        families.extend(others.into_iter().filter(|family| !family.get_metric().is_empty()));
        TextEncoder::new().encode_to_string(&families).expect("families that have metrics")
    }
}

fn recording(snapshot: &Snapshot) -> Registry {
    let registry = Registry::new();
    let counter = |name: &str, about: &str, value: u64| {
        let counter = registered(&registry, IntCounter::new(format!("thalweg_{name}_total"), about));
        counter.inc_by(value);
    };
    let Snapshot { counters, writer, usage, .. } = snapshot;
    counter("connections_opened", "Recorded connections that were opened.", counters.opened);
    counter("connections_joined", "Connections that were already open when they were first observed.", counters.joined);
    counter("connections_unsampled", "Connections that were not recorded because of --sample.", counters.unsampled);
    counter("lost_events", "Events dropped because the event queue was full.", counters.lost_events);
    counter(
        "lost_connections",
        "Attempts to record a connection that failed because the table was full (--max-open).",
        counters.lost_connections,
    );
    counter(
        "lost_rows",
        "Rows dropped because the queue was full: the disk rejected writes, or was too slow.",
        writer.rows_lost,
    );
    counter("written_rows", "Rows written to complete files.", writer.rows_written);
    counter("removed_files", "Record files deleted to make space for newer ones.", writer.files_removed);
    counter("clock_steps", "Steps of the wall clock while recording.", counters.clock_steps);
    counter("reattached", "Number of times that the BPF program was attached again.", counters.reattached);
    state(&registry, snapshot);
    let cpu = registered(&registry, Counter::new("process_cpu_seconds_total", "CPU time that the process has used."));
    cpu.inc_by(usage.cpu_us as f64 / 1e6);
    rows(&registry, counters);
    programs(&registry, &snapshot.programs);
    let info = Opts::new("thalweg_info", "Versions of the agent and of the kernel, as labels; always 1.")
        .const_label("version", &snapshot.version)
        .const_label("kernel", &snapshot.kernel);
    registered(&registry, Gauge::with_opts(info)).set(1.0);
    registry
}

fn state(registry: &Registry, snapshot: &Snapshot) {
    let gauge = |name: &str, about: &str, value: f64| {
        registered(registry, Gauge::new(name, about)).set(value);
    };
    let Snapshot { writer, usage, .. } = snapshot;
    let attached = if snapshot.not_attached.is_some() { 0.0 } else { 1.0 };
    gauge(
        "thalweg_attached",
        "1 while connections are recorded, otherwise 0; `thalweg-agent status` shows the reason.",
        attached,
    );
    let reload_failed = if snapshot.reload_trouble.is_some() { 1.0 } else { 0.0 };
    gauge(
        "thalweg_reload_failing",
        "1 if the last reload of the settings failed; `thalweg-agent status` shows the reason.",
        reload_failed,
    );
    gauge("thalweg_connections_open", "Recorded connections that are open.", snapshot.connections_open as f64);
    gauge("thalweg_waiting_rows", "Rows in memory that wait to be written.", writer.rows_waiting as f64);
    gauge("thalweg_record_files", "Complete record files.", writer.files as f64);
    gauge("thalweg_record_files_bytes", "Total size of the complete record files.", writer.bytes as f64);
    let failing = if writer.trouble.is_some() { 1.0 } else { 0.0 };
    gauge(
        "thalweg_write_failing",
        "1 while records cannot be written or merged; `thalweg-agent status` shows the reason.",
        failing,
    );
    gauge(
        "thalweg_sampled_one_in",
        "Sampling ratio: one in N connections is recorded.",
        snapshot.sampled_one_in as f64,
    );
    gauge(
        "thalweg_recording_start_time_seconds",
        "UNIX time at which recording began.",
        snapshot.since_us as f64 / 1e6,
    );
    gauge("process_resident_memory_bytes", "Resident memory of the process.", usage.process_bytes as f64);
    if let Some(bytes) = usage.maps_bytes {
        gauge("thalweg_ebpf_maps_bytes", "Memory of the BPF maps in the kernel.", bytes as f64);
    }
}

fn rows(registry: &Registry, counters: &Counters) {
    let options = Opts::new("thalweg_rows_total", "Rows recorded, by kind.");
    let rows = registered(registry, IntCounterVec::new(options, &["kind"]));
    for (kind, count) in
        [("close", counters.close_rows), ("interim", counters.interim_rows), ("transfer", counters.transfer_rows)]
    {
        rows.with_label_values(&[kind]).inc_by(count);
    }
}

fn programs(registry: &Registry, programs: &[Program]) {
    let runs = Opts::new("thalweg_ebpf_runs_total", "Runs of each BPF program; only with kernel.bpf_stats_enabled.");
    let runs = registered(registry, IntCounterVec::new(runs, &["program"]));
    let seconds = Opts::new(
        "thalweg_ebpf_run_seconds_total",
        "Run time of each BPF program; only with kernel.bpf_stats_enabled.",
    );
    let seconds = registered(registry, prometheus::CounterVec::new(seconds, &["program"]));
    for program in programs {
        runs.with_label_values(&[&program.name]).inc_by(program.runs);
        seconds.with_label_values(&[&program.name]).inc_by(program.run_ns as f64 / 1e9);
    }
}

/// Registers a metric; panics if its name is invalid or already used.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, created: prometheus::Result<C>) -> C {
    let collector = created.expect("valid names");
    registry.register(Box::new(collector.clone())).expect("a name of its own");
    collector
}

/// Returns 1, 2 and 5 times every power of ten from 10^`first` on, up to 10^`last`.
fn steps(first: i32, last: i32) -> Vec<f64> {
    // Parsed from decimal text, because the product of two floats need not be the number nearest to 0.0002.
    let number = |digit: u32, power: i32| format!("{digit}e{power}").parse::<f64>().expect("a number");
    let of_power = |power| [1, 2, 5].map(|digit| number(digit, power));
    (first..last).flat_map(of_power).chain([number(1, last)]).collect()
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
