//! Rows of flows that programs generate, from the run times of clients and the meter's counters.
//!
//! A connection in the tables is one run of a client. The packets of a 5-tuple belong to the last run that had started
//! when its first packet entered the path. Small 5-tuples are control connections, such as iperf3's, and are not
//! counted.

use super::qlog::{self, Metrics};
use crate::protocol::{Connection, MeterSample, Metered, ProgramRun};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use thalweg_plan::labels::{FlowLabels, RowLabels};
use thalweg_plan::plan::Experiment;
use thalweg_trace::{FlowRow, SampleRow, Sink};

/// Ratio of the bytes of a run's largest 5-tuple to those of another one, above which the other one is not counted.
const CONTROL: u64 = 100;

/// Events about programs, from hosts and from the meter.
#[derive(Debug, Default)]
pub(super) struct ProgramRows {
    runs: Vec<ProgramRun>,
    metered: Vec<Metered>,
    samples: Vec<MeterSample>,
}

struct Run<'a> {
    run: &'a ProgramRun,
    /// Counters of its 5-tuples in the direction of the data.
    data: Vec<&'a Metered>,
    /// Time of the first packet of these 5-tuples, in either direction.
    first_us: Option<u64>,
}

impl ProgramRows {
    pub fn run(&mut self, run: ProgramRun) {
        self.runs.push(run);
    }

    pub fn metered(&mut self, metered: Metered) {
        self.metered.push(metered);
    }

    pub fn sample(&mut self, sample: MeterSample) {
        self.samples.push(sample);
    }

    /// Passes the rows to `sink`. `logs` is the experiment and the folder with the output of its programs.
    pub fn finish(
        mut self,
        labels: &RowLabels,
        untrustworthy: Option<&Arc<str>>,
        logs: Option<(&Experiment, &Path)>,
        sink: &mut dyn Sink,
    ) {
        self.runs.sort_by_key(|run| run.of);
        let runs = self.joined();
        let metrics = logs.map(|(experiment, folder)| qlog::read(experiment, folder, &self.runs)).unwrap_or_default();
        for run in &runs {
            sink.flow(flow_row(run, labels, untrustworthy.cloned()));
        }
        for row in self.sample_rows(&runs, &metrics, labels) {
            sink.sample(row);
        }
    }

    fn joined(&self) -> Vec<Run<'_>> {
        let mut runs: Vec<Run<'_>> =
            self.runs.iter().map(|run| Run { run, data: Vec::new(), first_us: None }).collect();
        for metered in &self.metered {
            let owner = runs.iter_mut().rev().find(|Run { run, .. }| {
                (run.of.flow, run.of.copy) == (metered.flow, metered.copy) && run.start_us <= metered.first_us
            });
            let Some(run) = owner else { continue };
            if metered.is_data {
                run.data.push(metered);
            }
        }
        for run in &mut runs {
            let largest = run.data.iter().map(|data| data.delivered_bytes).max().unwrap_or(0);
            run.data.retain(|data| data.delivered_bytes >= largest / CONTROL);
            let clients: Vec<_> = run.data.iter().map(|data| data.client).collect();
            let of = (run.run.of.flow, run.run.of.copy);
            let both_ways = self.metered.iter().filter(|metered| (metered.flow, metered.copy) == of);
            run.first_us =
                both_ways.filter(|metered| clients.contains(&metered.client)).map(|metered| metered.first_us).min();
        }
        runs
    }

    fn sample_rows(
        &self,
        runs: &[Run<'_>],
        metrics: &BTreeMap<Connection, Vec<Metrics>>,
        labels: &RowLabels,
    ) -> Vec<SampleRow> {
        let mut rows: BTreeMap<(Connection, u64), SampleRow> = BTreeMap::new();
        let mut delayed_packets: BTreeMap<(Connection, u64), u64> = BTreeMap::new();
        for sample in &self.samples {
            let owner = runs.iter().find(|run| {
                (run.run.of.flow, run.run.of.copy) == (sample.flow, sample.copy)
                    && run.data.iter().any(|data| data.client == sample.client)
                    && sample.t_us <= run.end_us()
            });
            let Some(run) = owner else { continue };
            let key = (run.run.of, sample.t_us);
            let row = rows.entry(key).or_insert_with(|| empty_sample(run.run.of, sample.t_us, labels));
            row.acked_bytes += sample.delivered_bytes;
            row.segments += sample.segments;
            row.retransmits = add(row.retransmits, sample.retransmits);
            row.delivery_rate_bps = add(row.delivery_rate_bps, Some(sample.delivery_rate_bps));
            if let Some(delay_us) = sample.delay_us {
                let packets = delayed_packets.entry(key).or_default();
                *packets += sample.delayed_packets;
                let mean_us = row.delay_us.unwrap_or(0.0);
                row.delay_us = Some(mean_us + (delay_us - mean_us) * sample.delayed_packets as f64 / *packets as f64);
            }
        }
        for run in runs {
            let payload = run.data.iter().map(|data| data.max_payload_bytes).max().unwrap_or(0).max(1);
            let mut events = metrics.get(&run.run.of).into_iter().flatten().peekable();
            let mut latest = Metrics::default();
            for (_, row) in rows.range_mut((run.run.of, 0)..=(run.run.of, u64::MAX)) {
                while let Some(event) = events.next_if(|event| event.t_us <= row.t_us as f64) {
                    latest.update(event);
                }
                let packets = |bytes: Option<f64>| bytes.map(|bytes| (bytes / payload as f64).round() as u64);
                row.cwnd_packets = packets(latest.cwnd_bytes);
                row.inflight_packets = packets(latest.inflight_bytes);
                row.ssthresh_packets = packets(latest.ssthresh_bytes);
                row.srtt_us = latest.srtt_us.map(|us| us.round() as u64);
                row.min_rtt_us = latest.min_rtt_us.map(|us| us.round() as u64);
            }
        }
        rows.into_values().collect()
    }
}

impl Run<'_> {
    /// Returns the time at which the last byte left the path, or of the interruption if that is later; the end of the
    /// run if no data was delivered.
    fn end_us(&self) -> u64 {
        let last = self.data.iter().filter_map(|data| data.last_us).max();
        let ended = self.run.is_interrupted.then_some(self.run.end_us);
        last.max(ended).unwrap_or(self.run.end_us)
    }
}

fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    if one.is_none() { other } else { other.map(|other| other + one.unwrap_or(0)).or(one) }
}

fn flow_row(run: &Run<'_>, labels: &RowLabels, untrustworthy: Option<Arc<str>>) -> FlowRow {
    let FlowLabels { flow, cc, host, direction } = &labels.flows[run.run.of.flow];
    let (start_us, end_us) = (run.first_us.unwrap_or(run.run.start_us), run.end_us());
    let lasted_us = end_us.saturating_sub(start_us);
    let sum = |of: fn(&Metered) -> u64| run.data.iter().map(|data| of(data)).sum::<u64>();
    let acked_bytes = sum(|data| data.delivered_bytes);
    let delayed = sum(|data| data.delayed_packets);
    let weighted = run.data.iter().filter_map(|data| Some(data.delay_mean_us? * data.delayed_packets as f64));
    let largest = run.data.iter().max_by_key(|data| data.delivered_bytes);
    let is_tcp = run.data.iter().all(|data| data.retransmits.is_some());
    FlowRow {
        experiment: labels.experiment,
        repetition: labels.repetition,
        flow: flow.clone(),
        copy: run.run.of.copy,
        connection: run.run.of.connection,
        transfer: 0,
        cc: cc.clone(),
        host: host.clone(),
        direction: *direction,
        size_bytes: run.run.size_bytes,
        start_us,
        end_us,
        completed: run.run.completed,
        fct_us: run.run.completed.then_some(lasted_us),
        acked_bytes,
        goodput_bps: if lasted_us == 0 { 0.0 } else { acked_bytes as f64 * 8e6 / lasted_us as f64 },
        segments: sum(|data| data.segments),
        retransmits: (is_tcp && !run.data.is_empty()).then(|| sum(|data| data.retransmits.unwrap_or(0))),
        timeouts: None,
        recoveries: None,
        undos: None,
        marked_segments: None,
        rtt_min_us: None,
        rtt_mean_us: None,
        rtt_p50_us: None,
        rtt_p95_us: None,
        rtt_p99_us: None,
        item: None,
        bitrate_bps: None,
        stall_us: None,
        lost_packets: (!run.data.is_empty()).then(|| sum(|data| data.lost_packets)),
        delay_min_us: run.data.iter().filter_map(|data| data.delay_min_us).min_by(f64::total_cmp),
        delay_mean_us: (delayed > 0).then(|| weighted.sum::<f64>() / delayed as f64),
        delay_p95_us: largest.and_then(|data| data.delay_p95_us),
        untrustworthy,
    }
}

fn empty_sample(of: Connection, t_us: u64, labels: &RowLabels) -> SampleRow {
    SampleRow {
        experiment: labels.experiment,
        repetition: labels.repetition,
        flow: labels.flows[of.flow].flow.clone(),
        copy: of.copy,
        connection: of.connection,
        t_us,
        cwnd_packets: None,
        ssthresh_packets: None,
        inflight_packets: None,
        pacing_rate_bps: None,
        delivery_rate_bps: None,
        srtt_us: None,
        min_rtt_us: None,
        acked_bytes: 0,
        segments: 0,
        retransmits: None,
        marked_segments: None,
        ca_state: None,
        delay_us: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_of_a_sample_is_the_mean_over_the_packets_of_all_5_tuples() {
        let of = Connection { flow: 0, copy: 0, connection: 0 };
        let client = |port: u16| ([10, 0, 0, 1], port).into();
        let mut rows = ProgramRows::default();
        rows.run(ProgramRun {
            of,
            size_bytes: None,
            start_us: 0,
            end_us: 2_000_000,
            completed: true,
            is_interrupted: false,
            zero_realtime_us: 0,
        });
        for (port, delay_us, delayed_packets) in [(1, 2_000.0, 30), (2, 6_000.0, 10)] {
            rows.metered(Metered {
                flow: 0,
                copy: 0,
                client: client(port),
                is_data: true,
                first_us: 10,
                last_us: Some(1_500_000),
                delivered_bytes: 10_000,
                segments: 10,
                retransmits: Some(0),
                lost_packets: 0,
                max_payload_bytes: 1_000,
                delayed_packets,
                delay_min_us: Some(delay_us),
                delay_mean_us: Some(delay_us),
                delay_p95_us: Some(delay_us),
            });
            rows.sample(MeterSample {
                flow: 0,
                copy: 0,
                client: client(port),
                t_us: 1_000_000,
                delivered_bytes: 10_000,
                segments: 10,
                retransmits: Some(0),
                delivery_rate_bps: 80_000,
                delay_us: Some(delay_us),
                delayed_packets,
            });
        }
        let label = FlowLabels { flow: "a".into(), cc: "cubic".into(), host: "sender".into(), direction: None };
        let labels = RowLabels { experiment: 0, repetition: 0, flows: vec![label] };
        let samples = rows.sample_rows(&rows.joined(), &BTreeMap::new(), &labels);
        assert_eq!(samples.len(), 1);
        assert_eq!((samples[0].delay_us, samples[0].delivery_rate_bps), (Some(3_000.0), Some(160_000)));
    }
}
