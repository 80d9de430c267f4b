//! Converts events of hosts to rows of the tables.

use super::program_rows::ProgramRows;
use crate::diag;
use crate::protocol::{Connection, FlowReport, HostEvent, LINKS, SampleReport, StateReport};
use crate::relay::capture::Captured;
use std::path::Path;
use std::sync::Arc;
use thalweg_link::DropCause;
use thalweg_plan::labels::{FlowLabels, RowLabels};
use thalweg_plan::plan::{Experiment, Queue};
use thalweg_trace::{FlowRow, PacketRow, SampleRow, Sink, StateRow};

/// Names of loss recovery states, indexed by the kernel's numbers (enum tcp_ca_state in include/uapi/linux/tcp.h).
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// Builds rows and passes them to a sink. Rows of flows, and all rows of programs, are held back until
/// [`Rows::finish`], because they depend on later events.
pub struct Rows<'a> {
    labels: RowLabels,
    sink: &'a mut dyn Sink,
    transfers: Vec<FlowReport>,
    programs: ProgramRows,
    /// Number of packets that left the queue, by direction.
    sent: [u64; 2],
    /// Whether the queue drops packets only when its limit is reached, by direction.
    drops_when_full: [bool; 2],
}

impl<'a> Rows<'a> {
    /// Returns a builder without rows.
    pub fn new(experiment: &Experiment, sink: &'a mut dyn Sink) -> Rows<'a> {
        let drops_when_full = [&experiment.forward, &experiment.reverse].map(|link| link.queue == Queue::Fifo {});
        Rows {
            labels: RowLabels::of(experiment),
            sink,
            transfers: Vec::new(),
            programs: ProgramRows::default(),
            sent: [0; 2],
            drops_when_full,
        }
    }

    /// Processes a host's event.
    ///
    /// # Errors
    /// Returns the event if it is not a row of this experiment.
    pub fn take(&mut self, event: HostEvent) -> Result<(), HostEvent> {
        match event {
            HostEvent::Label(label) => self.labels.flows.push(FlowLabels {
                flow: label.flow.into(),
                cc: label.cc.into(),
                host: "sender".into(),
                direction: Some(if label.is_up { "up" } else { "down" }),
            }),
            HostEvent::Flow(report) if self.has(report.of) => self.transfers.push(*report),
            HostEvent::Sample(report) if self.has(report.of) && usize::from(report.ca_state) < CA_STATES.len() => {
                let row = self.sample(*report);
                self.sink.sample(row);
            }
            HostEvent::State(report) => match diag::state_key(&report.key) {
                Some(key) if self.has(report.of) => {
                    let row = self.state(&report, key);
                    self.sink.state(row);
                }
                _ => return Err(HostEvent::State(report)),
            },
            HostEvent::Queue(report) => {
                let link = usize::from(!report.is_forward);
                self.sent[link] = self.sent[link].max(report.counters.sent_packets);
                let row = report.row(self.labels.experiment, self.labels.repetition);
                self.sink.queue(row);
            }
            HostEvent::ProgramRun(run) if self.has(run.of) => self.programs.run(*run),
            HostEvent::Metered(metered) if metered.flow < self.labels.flows.len() => self.programs.metered(*metered),
            HostEvent::MeterSample(sample) if sample.flow < self.labels.flows.len() => self.programs.sample(*sample),
            other => return Err(other),
        }
        Ok(())
    }

    /// Passes on the row of a captured packet.
    pub fn packet(&mut self, packet: Captured) {
        let link = usize::from(!packet.is_forward);
        let cause = match packet.fate {
            "lost" => Some(DropCause::Random),
            "policed" => Some(DropCause::Policed),
            "dropped" if self.drops_when_full[link] => Some(DropCause::Full),
            _ => None,
        };
        self.sink.packet(PacketRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            link: LINKS[link],
            t_us: packet.t.as_micros(),
            number: packet.number,
            fate: packet.fate,
            size_bytes: packet.size_bytes.0,
            backlog_bytes: packet.backlog_bytes.0,
            cause: cause.map(DropCause::name),
            // The sojourn time is unknown when the packet is captured.
            sojourn_us: None,
            marked: None,
        });
    }

    /// Passes on the rows that were held back, and returns the number of packets that left the queues. `logs` is the
    /// experiment and the folder with the output of its programs.
    pub fn finish(mut self, untrustworthy: &[String], logs: Option<(&Experiment, &Path)>) -> u64 {
        let reasons: Option<Arc<str>> = (!untrustworthy.is_empty()).then(|| untrustworthy.join("; ").into());
        let mut transfers = std::mem::take(&mut self.transfers);
        transfers.sort_by_key(|report| (report.of, report.transfer));
        for report in transfers {
            let row = self.flow(report, reasons.clone());
            self.sink.flow(row);
        }
        std::mem::take(&mut self.programs).finish(&self.labels, reasons.as_ref(), logs, self.sink);
        self.sent.iter().sum()
    }

    fn has(&self, of: Connection) -> bool {
        of.flow < self.labels.flows.len()
    }

    fn flow(&self, report: FlowReport, untrustworthy: Option<Arc<str>>) -> FlowRow {
        let FlowLabels { flow, cc, host, direction } = &self.labels.flows[report.of.flow];
        let lasted_us = report.end_us.saturating_sub(report.start_us);
        let goodput_bps = if lasted_us == 0 { 0.0 } else { report.acked_bytes as f64 * 8.0 / (lasted_us as f64 / 1e6) };
        FlowRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            flow: flow.clone(),
            copy: report.of.copy,
            connection: report.of.connection,
            transfer: report.transfer,
            cc: cc.clone(),
            host: host.clone(),
            direction: *direction,
            size_bytes: report.size_bytes,
            start_us: report.start_us,
            end_us: report.end_us,
            completed: report.completed,
            fct_us: report.completed.then_some(lasted_us),
            acked_bytes: report.acked_bytes,
            goodput_bps,
            segments: report.segments,
            retransmits: report.retransmits,
            timeouts: report.timeouts,
            // The kernel has no counters of these for a connection.
            recoveries: None,
            undos: None,
            marked_segments: report.marked_segments,
            rtt_min_us: report.rtt_min_us,
            rtt_mean_us: report.rtt_mean_us,
            rtt_p50_us: report.rtt_p50_us,
            rtt_p95_us: report.rtt_p95_us,
            rtt_p99_us: report.rtt_p99_us,
            item: report.item,
            bitrate_bps: report.bitrate_bps,
            stall_us: report.stall_us,
            lost_packets: None,
            delay_min_us: None,
            delay_mean_us: None,
            delay_p95_us: None,
            untrustworthy,
        }
    }

    fn sample(&self, report: SampleReport) -> SampleRow {
        SampleRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            flow: self.labels.flows[report.of.flow].flow.clone(),
            copy: report.of.copy,
            connection: report.of.connection,
            t_us: report.t_us,
            cwnd_packets: Some(report.cwnd_packets),
            ssthresh_packets: report.ssthresh_packets,
            inflight_packets: Some(report.inflight_packets),
            pacing_rate_bps: report.pacing_rate_bps,
            delivery_rate_bps: report.delivery_rate_bps,
            srtt_us: report.srtt_us,
            min_rtt_us: report.min_rtt_us,
            acked_bytes: report.acked_bytes,
            segments: report.segments,
            retransmits: Some(report.retransmits),
            marked_segments: Some(report.marked_segments),
            ca_state: Some(CA_STATES[usize::from(report.ca_state)]),
            delay_us: None,
        }
    }

    fn state(&self, report: &StateReport, key: &'static str) -> StateRow {
        StateRow {
            experiment: self.labels.experiment,
            repetition: self.labels.repetition,
            flow: self.labels.flows[report.of.flow].flow.clone(),
            copy: report.of.copy,
            connection: report.of.connection,
            t_us: report.t_us,
            key,
            value: report.value,
        }
    }
}
