//! The process that measures the programs of an experiment, and reports the counts as events.

use super::{FlowCount, FlowKey, Meter, Report, Settings, TapPoint, Taps};
use crate::error::Error;
use crate::protocol::{Command, HostEvent, MeterPoint, MeterSample, Metered, Served};
use crate::stage::{HostReport, Stage};
use std::net::SocketAddr;
use thalweg_plan::plan::Experiment;
use thalweg_units::Time;

/// Measures the packets of these servers until the command `stop`.
///
/// # Errors
/// `no-packet-socket`, `no-resources`, `bad-command`.
pub(crate) fn play(
    stage: &Stage<'_>,
    experiment: &Experiment,
    points: &[MeterPoint],
    servers: &[Served],
) -> Result<HostReport, Error> {
    let point =
        |point: &MeterPoint| TapPoint { namespace: Some(point.namespace.clone()), interface: point.interface.clone() };
    let taps = Taps::open(&points.iter().map(point).collect::<Vec<_>>())?;
    let clock = stage.wait_for_start()?;
    let settings = Settings {
        clock,
        interval: experiment.sample_interval_ns,
        only: Some(servers.iter().map(|served| served.address).collect()),
        until: experiment.duration_ns.map(|duration| Time::ZERO + duration),
    };
    let meter = Meter::read(taps, settings)?;
    while stage.commands.next() != Command::Stop {}
    Ok(report(stage, servers, &meter.stop()))
}

fn report(stage: &Stage<'_>, servers: &[Served], report: &Report) -> HostReport {
    for count in &report.flows {
        if let Some((served, client, is_data)) = owner(servers, &count.key) {
            stage.events.buffer(&HostEvent::Metered(Box::new(metered(count, served, client, is_data))));
        }
    }
    for sample in &report.samples {
        let Some((served, client, true)) = owner(servers, &sample.key) else { continue };
        stage.events.buffer(&HostEvent::MeterSample(Box::new(MeterSample {
            flow: served.flow,
            copy: served.copy,
            client,
            t_us: sample.at.as_micros(),
            delivered_bytes: sample.delivered_bytes,
            segments: sample.data_packets,
            retransmits: sample.retransmits,
            delivery_rate_bps: sample.delivery_rate_bps,
            delay_us: sample.delay_us,
            delayed_packets: sample.delayed_packets,
        })));
    }
    let missed = report.missed_packets;
    let doubt =
        format!("the meter missed {missed} packets: goodput and losses of programs are wrong; close other programs");
    HostReport {
        measured: [("meter_missed_packets".to_owned(), missed as f64)].into(),
        untrustworthy: (missed > 0).then_some(doubt).into_iter().collect(),
    }
}

/// Returns the server, the client's address, and whether the flow has the direction of the data.
fn owner<'a>(servers: &'a [Served], key: &FlowKey) -> Option<(&'a Served, SocketAddr, bool)> {
    servers.iter().find_map(|served| {
        if key.from == served.address {
            Some((served, key.to, !served.client_sends))
        } else if key.to == served.address {
            Some((served, key.from, served.client_sends))
        } else {
            None
        }
    })
}

fn metered(count: &FlowCount, served: &Served, client: SocketAddr, is_data: bool) -> Metered {
    Metered {
        flow: served.flow,
        copy: served.copy,
        client,
        is_data,
        first_us: count.first.as_micros(),
        last_us: count.last_delivery.map(Time::as_micros),
        delivered_bytes: count.delivered_bytes,
        segments: count.data_packets,
        retransmits: count.retransmits,
        lost_packets: count.lost_packets,
        max_payload_bytes: count.max_payload_bytes,
        delayed_packets: count.delays.count(),
        delay_min_us: count.delays.min_us(),
        delay_mean_us: count.delays.mean_us(),
        delay_p95_us: count.delays.quantile_us(950),
    }
}
