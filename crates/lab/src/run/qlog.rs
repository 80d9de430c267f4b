//! Reads congestion windows and round-trip times from qlog files of programs (draft-ietf-quic-qlog-main-schema).
//!
//! Two formats are supported: one JSON document with `traces`, and JSON-SEQ with a record per event. Only events whose
//! name ends with `metrics_updated` are used.

use crate::protocol::{Connection, ProgramRun};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thalweg_plan::plan::Experiment;

/// Maximum size of a file in bytes; larger files are not read.
const MAX_BYTES: u64 = 256 << 20;

/// First byte of a JSON-SEQ record (RFC 7464).
const RECORD: u8 = 0x1e;

/// Maximum difference in microseconds between the first event of a file and the start of its run. Above it, the clocks
/// are assumed to differ, and the first event is aligned with the start.
const MAX_OFFSET_US: f64 = 1e9;

/// State of a sender at one time; `None` for values that were not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    pub t_us: f64,
    pub cwnd_bytes: Option<f64>,
    pub inflight_bytes: Option<f64>,
    pub ssthresh_bytes: Option<f64>,
    pub srtt_us: Option<f64>,
    pub min_rtt_us: Option<f64>,
}

impl Metrics {
    /// Updates the values from a later event; those that it lacks stay unchanged.
    pub fn update(&mut self, event: &Metrics) {
        *self = Metrics {
            t_us: event.t_us,
            cwnd_bytes: event.cwnd_bytes.or(self.cwnd_bytes),
            inflight_bytes: event.inflight_bytes.or(self.inflight_bytes),
            ssthresh_bytes: event.ssthresh_bytes.or(self.ssthresh_bytes),
            srtt_us: event.srtt_us.or(self.srtt_us),
            min_rtt_us: event.min_rtt_us.or(self.min_rtt_us),
        };
    }
}

/// Reads the files of flows with `qlog`. `runs` are sorted by flow, copy and connection.
pub(super) fn read(experiment: &Experiment, folder: &Path, runs: &[ProgramRun]) -> BTreeMap<Connection, Vec<Metrics>> {
    let mut metrics = BTreeMap::new();
    for (index, flow) in experiment.flows.iter().enumerate() {
        let Some(program) = flow.program.as_ref().filter(|program| program.qlog) else { continue };
        let folder = folder.join(&flow.name);
        for copy in 0..u64::from(flow.count) {
            let runs: Vec<&ProgramRun> =
                runs.iter().filter(|run| (run.of.flow, run.of.copy) == (index, copy)).collect();
            if program.client_sends {
                for run in runs {
                    let files = files(&folder.join(format!("client-{copy}-{}", run.of.connection)));
                    attribute(&files, &[run], &mut metrics);
                }
            } else {
                attribute(&files(&folder.join(format!("server-{copy}"))), &runs, &mut metrics);
            }
        }
    }
    metrics
}

/// Assigns each file to the latest run that had started at its first event; without such a run, or if the clocks
/// differ, assigns files to runs in order.
fn attribute(files: &[PathBuf], runs: &[&ProgramRun], found: &mut BTreeMap<Connection, Vec<Metrics>>) {
    for (number, events) in files.iter().filter_map(|file| events(file)).enumerate() {
        let (Some(first), Some(run)) = (events.first(), runs.get(number).or(runs.last())) else { continue };
        let offset = first.t_us - run.zero_realtime_us as f64 - run.start_us as f64;
        let (run, zero) = if offset.abs() > MAX_OFFSET_US {
            (*run, first.t_us - run.start_us as f64)
        } else {
            let at = |run: &&&ProgramRun| run.zero_realtime_us as f64 + run.start_us as f64 <= first.t_us;
            let run = runs.iter().rev().find(at).unwrap_or(run);
            (*run, run.zero_realtime_us as f64)
        };
        let metrics = found.entry(run.of).or_default();
        metrics.extend(events.iter().map(|event| Metrics { t_us: event.t_us - zero, ..*event }));
        metrics.sort_by(|one, other| one.t_us.total_cmp(&other.t_us));
    }
}

/// Returns the qlog files in a folder, sorted by modification time.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut dated_files: Vec<_> = entries
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "qlog" || it == "sqlog"))
        .filter_map(|entry| {
            Some((entry.metadata().ok().filter(|about| about.len() <= MAX_BYTES)?.modified().ok()?, entry.path()))
        })
        .collect();
    dated_files.sort();
    dated_files.into_iter().map(|(_, path)| path).collect()
}

/// Returns the metrics of a file; `None` if it is not qlog or has no metrics.
fn events(file: &Path) -> Option<Vec<Metrics>> {
    let bytes = fs::read(file).ok()?;
    let events = if bytes.first() == Some(&RECORD) { sequence(&bytes) } else { document(&bytes)? };
    Some(events).filter(|events| !events.is_empty())
}

fn sequence(bytes: &[u8]) -> Vec<Metrics> {
    let mut records =
        bytes.split(|byte| *byte == RECORD).filter_map(|record| serde_json::from_slice::<Value>(record).ok());
    let header = records.next().unwrap_or_default();
    times(&header["trace"], records)
}

fn document(bytes: &[u8]) -> Option<Vec<Metrics>> {
    let mut document: Value = serde_json::from_slice(bytes).ok()?;
    let traces = document["traces"].as_array_mut()?;
    let of = |trace: &mut Value| {
        let events = trace["events"].take();
        times(trace, events.as_array().cloned().unwrap_or_default().into_iter())
    };
    Some(traces.iter_mut().flat_map(of).collect())
}

/// Reads events. Their times are in milliseconds and, as the trace declares, absolute, relative to its reference time,
/// or relative to the previous event.
fn times(trace: &Value, events: impl Iterator<Item = Value>) -> Vec<Metrics> {
    let common = &trace["common_fields"];
    let is_delta = matches!(common["time_format"].as_str(), Some("delta" | "relative_to_previous_event"));
    let mut now_ms = reference_ms(&common["reference_time"]);
    let reference_ms = now_ms;
    let is_absolute = common["time_format"].as_str() == Some("absolute");
    let mut metrics = Vec::new();
    for event in events {
        let Some(time_ms) = event["time"].as_f64() else { continue };
        now_ms = match (is_delta, is_absolute) {
            (true, _) => now_ms + time_ms,
            (_, true) => time_ms,
            _ => reference_ms + time_ms,
        };
        let name = event["name"].as_str().unwrap_or_default();
        if name.ends_with("metrics_updated") {
            let number = |key: &str| event["data"][key].as_f64();
            metrics.push(Metrics {
                t_us: now_ms * 1e3,
                cwnd_bytes: number("congestion_window"),
                inflight_bytes: number("bytes_in_flight"),
                ssthresh_bytes: number("ssthresh"),
                srtt_us: number("smoothed_rtt").map(|ms| ms * 1e3),
                min_rtt_us: number("min_rtt").map(|ms| ms * 1e3),
            });
        }
    }
    metrics
}

/// Returns a reference time in milliseconds since 1970; 0 if it is unknown. Later drafts have an object with an epoch,
/// and with a wall-clock time where the epoch of a monotonic clock is unknown.
fn reference_ms(reference: &Value) -> f64 {
    let date = |key: &str| {
        let time = humantime::parse_rfc3339(reference[key].as_str()?).ok()?;
        Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64() * 1e3)
    };
    reference.as_f64().or_else(|| date("epoch")).or_else(|| date("wall_clock_time")).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_qlog_formats_are_parsed_relative_to_the_reference_time() {
        let document = br#"{"qlog_version": "0.3", "traces": [{"common_fields": {"reference_time": 1000.0}, "events": [
            {"time": 5.5, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, "smoothed_rtt": 40.5}},
            {"time": 6, "name": "transport:packet_sent", "data": {}}]}]}"#;
        let expected =
            Metrics { t_us: 1_005_500.0, cwnd_bytes: Some(12_000.0), srtt_us: Some(40_500.0), ..Metrics::default() };
        assert_eq!(super::document(document), Some(vec![expected]));
        let records = b"\x1e{\"qlog_version\":\"0.4\",\"trace\":{\"common_fields\":{\"time_format\":\"delta\"}}}\n\
            \x1e{\"time\":2,\"name\":\"transport:packet_sent\"}\n\
            \x1e{\"time\":3,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"bytes_in_flight\":1200,\"min_rtt\":1}}\n\x1e{cut";
        let expected =
            Metrics { t_us: 5000.0, inflight_bytes: Some(1200.0), min_rtt_us: Some(1000.0), ..Metrics::default() };
        assert_eq!(sequence(records), [expected]);
    }

    #[test]
    fn a_reference_time_may_be_an_object() {
        let time_us = |reference: &str| {
            let document = format!(
                r#"{{"traces": [{{"common_fields": {{"reference_time": {reference}}},
                    "events": [{{"time": 2, "name": "quic:recovery_metrics_updated", "data": {{}}}}]}}]}}"#
            );
            super::document(document.as_bytes()).expect("a document")[0].t_us
        };
        assert_eq!(time_us(r#"{"clock_type": "system", "epoch": "1970-01-01T00:01:00.500Z"}"#), 60_502_000.0);
        assert_eq!(time_us(r#"{"epoch": "unknown", "wall_clock_time": "1970-01-01T00:00:03Z"}"#), 3_002_000.0);
        assert_eq!(time_us(r#"{"clock_type": "monotonic", "epoch": "unknown"}"#), 2_000.0);
    }

    #[test]
    fn values_omitted_by_an_event_keep_their_previous_value() {
        let mut latest = Metrics { cwnd_bytes: Some(1.0), ..Metrics::default() };
        latest.update(&Metrics { t_us: 3.0, srtt_us: Some(2.0), ..Metrics::default() });
        assert_eq!((latest.cwnd_bytes, latest.srtt_us), (Some(1.0), Some(2.0)));
    }
}
