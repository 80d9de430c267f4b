//! Creates rows for the tables from the state of the simulation.

use crate::connection::{Connection, Transfer};
use thalweg_link::{Link, Packet};
use thalweg_plan::labels::{FlowLabels, RowLabels};
use thalweg_plan::plan::Experiment;
use thalweg_tcp::Info;
use thalweg_trace::{FlowRow, QueueRow, SampleRow, Sink, StateRow};
use thalweg_units::{Packets, Rate, Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Rows {
    labels: RowLabels,
}

impl Rows {
    pub(crate) fn new(experiment: &Experiment) -> Rows {
        Rows { labels: RowLabels::of(experiment) }
    }

    /// Returns the row of a transfer that ends at `now`, complete or not.
    pub(crate) fn transfer(
        &self,
        flow: usize,
        copy: u64,
        connection: &Connection,
        transfer: &Transfer,
        now: Time,
    ) -> FlowRow {
        let FlowLabels { flow, cc, host, direction } = self.labels.flows[flow].clone();
        let (before, after) = (&transfer.before, connection.sender.info(now).counters);
        let acked = connection.sender.acked().saturating_sub(transfer.offset);
        let acked = transfer.size.map_or(acked, |size| acked.min(size));
        let completed = transfer.is_complete(connection.sender.acked());
        let lasted = now.since(transfer.start);
        let goodput_bps = if lasted == Span::ZERO { 0.0 } else { acked.0 as f64 * 8.0 / lasted.as_secs_f64() };
        FlowRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            flow,
            copy,
            connection: connection.number,
            transfer: connection.transfers_ended,
            cc,
            host,
            direction,
            size_bytes: transfer.size.map(|size| size.0),
            start_us: transfer.start.as_micros(),
            end_us: now.as_micros(),
            completed,
            fct_us: completed.then_some(lasted.as_micros()),
            acked_bytes: acked.0,
            goodput_bps,
            segments: after.segments - before.segments,
            retransmits: Some(after.retransmits - before.retransmits),
            timeouts: Some(after.timeouts - before.timeouts),
            recoveries: Some(after.recoveries - before.recoveries),
            undos: Some(after.undos - before.undos),
            marked_segments: Some(after.marked - before.marked),
            rtt_min_us: transfer.rtts.min_us(),
            rtt_mean_us: transfer.rtts.mean_us(),
            rtt_p50_us: transfer.rtts.quantile_us(500),
            rtt_p95_us: transfer.rtts.quantile_us(950),
            rtt_p99_us: transfer.rtts.quantile_us(990),
            item: transfer.item.map(|item| item.number),
            bitrate_bps: transfer.item.and_then(|item| item.bitrate).map(|rate| rate.0),
            stall_us: None,
            lost_packets: None,
            delay_min_us: None,
            delay_mean_us: None,
            delay_p95_us: None,
            untrustworthy: None,
        }
    }

    /// Returns the sample of a connection at `now`.
    pub(crate) fn sample(&self, flow: usize, copy: u64, connection: &Connection, now: Time) -> SampleRow {
        let info: Info = connection.sender.info(now);
        let bps = |rate: Option<Rate>| rate.map(|rate| rate.0);
        let us = |span: Option<Span>| span.map(Span::as_micros);
        SampleRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            flow: self.labels.flows[flow].flow.clone(),
            copy,
            connection: connection.number,
            t_us: now.as_micros(),
            cwnd_packets: Some(info.cwnd.0),
            ssthresh_packets: info.ssthresh.map(|Packets(packets)| packets),
            inflight_packets: Some(info.inflight.0),
            pacing_rate_bps: bps(info.pacing_rate),
            delivery_rate_bps: bps(info.delivery_rate),
            srtt_us: us(info.srtt),
            min_rtt_us: us(info.min_rtt),
            acked_bytes: connection.sender.acked().0,
            segments: info.counters.segments,
            retransmits: Some(info.counters.retransmits),
            marked_segments: Some(info.counters.marked),
            ca_state: Some(info.ca_state.name()),
            delay_us: None,
        }
    }

    /// Emits the algorithm-specific values of a connection that differ from the previous sample.
    pub(crate) fn state(&self, flow: usize, copy: u64, connection: &mut Connection, now: Time, sink: &mut dyn Sink) {
        let flow = &self.labels.flows[flow].flow;
        let (experiment, repetition, number, t_us) =
            (self.labels.experiment, self.labels.repetition, connection.number, now.as_micros());
        let Connection { sender, reported, .. } = connection;
        let mut report = reported.report();
        sender.report(now, &mut |key, value| {
            if report.is_change(key, value) {
                let flow = flow.clone();
                sink.state(StateRow { experiment, repetition, flow, copy, connection: number, t_us, key, value });
            }
        });
    }

    /// Returns the queue row of one direction at `now`.
    pub(crate) fn queue<P: Packet>(&self, name: &'static str, link: &mut Link<P>, now: Time) -> QueueRow {
        QueueRow::new(self.labels.experiment, self.labels.repetition, name, now.as_micros(), link.queue_counters(now))
    }
}
