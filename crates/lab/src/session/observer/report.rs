//! Builds the rows at the end of the session.

use super::sockets::{Sockets, Watched};
use crate::meter::{FlowCount, FlowKey, Protocol};
use crate::protocol::{Connection, ConnectionReport, FlowLabel, FlowReport, HostEvent, SampleReport, StateReport};
use crate::stage::EventWriter;
use std::collections::BTreeMap;
use std::net::IpAddr;
use thalweg_trace::Changes;
use thalweg_units::Time;

/// Congestion control in the rows of flows without a known algorithm.
const UNKNOWN: &str = "-";

/// Reports the direction with more data of each connection, from the counters of the meter and the socket.
pub(super) fn report(events: &EventWriter, receiver: IpAddr, counts: Vec<FlowCount>, sockets: &mut [Sockets]) {
    let mut labels: BTreeMap<(String, String, bool), (usize, u64)> = BTreeMap::new();
    for count in data_directions(counts) {
        let FlowKey { protocol, from, to } = count.key;
        let socket = match protocol {
            Protocol::Tcp => sockets.iter_mut().find_map(|sockets| sockets.take(from, to)),
            Protocol::Udp => None,
        };
        let cc = socket.as_ref().map(|socket| socket.algorithm.as_str()).filter(|name| !name.is_empty());
        let cc = cc.unwrap_or(UNKNOWN).to_owned();
        let name = format!("{protocol}-{}", from.port().min(to.port()));
        let is_up = from.ip() == receiver;
        let next = labels.len();
        let label = labels.entry((name.clone(), cc.clone(), is_up)).or_insert((next, 0));
        let of = Connection { flow: label.0, copy: 0, connection: label.1 };
        label.1 += 1;
        if of.connection == 0 {
            events.buffer(&HostEvent::Label(Box::new(FlowLabel { flow: name, cc: cc.clone(), is_up })));
        }
        let row = row(of, &count, socket.as_ref());
        events.buffer(&HostEvent::Connection(Box::new(ConnectionReport {
            protocol: protocol.to_string(),
            from,
            to,
            cc: Some(cc).filter(|cc| cc != UNKNOWN),
            start_us: row.start_us,
            end_us: row.end_us,
            bytes: count.delivered_bytes,
            packets: count.data_packets,
            retransmits: count.retransmits,
            lost_packets: count.lost_packets,
            rtt_us: row.rtt_p50_us,
            delay_us: count.delays.quantile_us(500),
        })));
        events.buffer(&HostEvent::Flow(Box::new(row)));
        socket.iter().for_each(|socket| samples(events, of, socket));
    }
}

fn data_directions(counts: Vec<FlowCount>) -> Vec<FlowCount> {
    let weight = |count: &FlowCount| (count.delivered_bytes, count.data_packets, count.entered_packets);
    let weights: BTreeMap<FlowKey, _> = counts.iter().map(|count| (count.key, weight(count))).collect();
    let is_data = |count: &FlowCount| {
        let (ours, other) = (weight(count), weights.get(&count.key.reversed()));
        // The order of the keys breaks ties, so that one direction is returned.
        other.is_none_or(|other| ours > *other || (ours == *other && count.key < count.key.reversed()))
    };
    counts.into_iter().filter(is_data).collect()
}

fn row(of: Connection, count: &FlowCount, socket: Option<&Watched>) -> FlowReport {
    let end = count.last_delivery.unwrap_or(count.first);
    let info = socket.map(|socket| socket.info);
    let rtts = socket.map(|socket| &socket.rtts);
    FlowReport {
        of,
        transfer: 0,
        size_bytes: None,
        start_us: count.first.as_micros(),
        end_us: end.as_micros(),
        completed: socket.is_some_and(|socket| socket.is_closed),
        acked_bytes: count.delivered_bytes,
        segments: count.data_packets,
        retransmits: count.retransmits,
        timeouts: info.and_then(|info| info.timeouts),
        marked_segments: info.map(|info| info.marked_segments),
        rtt_min_us: info.and_then(|info| info.min_rtt_us).map(|rtt| rtt as f64),
        rtt_mean_us: rtts.and_then(|rtts| rtts.mean_us()),
        rtt_p50_us: rtts.and_then(|rtts| rtts.quantile_us(500)),
        rtt_p95_us: rtts.and_then(|rtts| rtts.quantile_us(950)),
        rtt_p99_us: rtts.and_then(|rtts| rtts.quantile_us(990)),
        item: None,
        bitrate_bps: None,
        stall_us: None,
    }
}

fn samples(events: &EventWriter, of: Connection, socket: &Watched) {
    let mut changes = Changes::default();
    for (at, info, cc) in &socket.samples {
        let t_us = Time::as_micros(*at);
        events.buffer(&HostEvent::Sample(Box::new(SampleReport {
            of,
            t_us,
            cwnd_packets: info.cwnd_packets,
            ssthresh_packets: info.ssthresh_packets,
            inflight_packets: info.inflight_packets,
            pacing_rate_bps: info.pacing_rate_bps,
            delivery_rate_bps: info.delivery_rate_bps,
            srtt_us: info.srtt_us,
            min_rtt_us: info.min_rtt_us,
            acked_bytes: info.acked_bytes,
            segments: info.segments,
            retransmits: info.retransmits,
            marked_segments: info.marked_segments,
            ca_state: info.ca_state,
        })));
        let mut report = changes.report();
        cc.report(&mut |key, value| {
            if report.is_change(key, value) {
                events.buffer(&HostEvent::State(StateReport { of, t_us, key: key.to_owned(), value }));
            }
        });
    }
}
