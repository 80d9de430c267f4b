//! Builds the rows at the end of the experiment.
//!
//! The round-trip times of a transfer are the smoothed ones (`tcpi_rtt`) that were sampled during it, and the one at
//! its end. Each sample is weighted by the number of segments acknowledged since the previous one, because TCP samples
//! a round-trip time per ACK, not per time: a mean over time would overweight full queues, during which a flow delivers
//! little. `rtt_min` is the kernel's minimum of the connection (`tcpi_min_rtt`), not of the transfer.

use crate::protocol::{self, FlowReport, HostEvent, SampleReport, StateReport};
use crate::stage::EventWriter;
use crate::traffic::sampling::Sample;
use crate::traffic::socket::ports::Who;
use std::collections::HashMap;
use thalweg_trace::{Changes, Histogram};
use thalweg_units::{MSS, Span};

/// A transfer that has ended, completed or not.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) who: Who,
    pub(super) report: FlowReport,
    /// Offset of the transfer in the stream, in bytes.
    pub(super) offset: u64,
    /// Smoothed RTT at the end of the transfer.
    pub(super) srtt_us: Option<u64>,
}

/// Reports the rows. `copies` returns the flow and copy of a connection; `syn_retransmits` may omit zeros.
pub(super) fn tell(
    events: &EventWriter,
    copies: &dyn Fn(Who) -> (usize, u64),
    mut transfers: Vec<Ended>,
    samples: &[Sample],
    syn_retransmits: &HashMap<Who, u64>,
) {
    fill_in_rtts(&mut transfers, samples);
    for transfer in transfers {
        events.buffer(&HostEvent::Flow(Box::new(transfer.report)));
    }
    let mut reported: HashMap<Who, Changes> = HashMap::new();
    for sample in samples {
        let who = sample.who;
        let (flow, copy) = copies(who);
        let of = protocol::Connection { flow, copy, connection: who.connection.into() };
        let of_syn = syn_retransmits.get(&who).copied().unwrap_or(0);
        let t_us = sample.at.as_micros();
        events.buffer(&HostEvent::Sample(Box::new(SampleReport {
            of,
            t_us,
            cwnd_packets: sample.cwnd_packets.into(),
            ssthresh_packets: sample.ssthresh_packets.map(u64::from),
            inflight_packets: sample.inflight_packets.into(),
            pacing_rate_bps: sample.pacing_rate_bps,
            delivery_rate_bps: sample.delivery_rate_bps,
            srtt_us: sample.srtt_us.map(u64::from),
            min_rtt_us: sample.min_rtt_us.map(u64::from),
            acked_bytes: sample.acked_bytes,
            segments: sample.segments.into(),
            retransmits: u64::from(sample.retransmits).saturating_sub(of_syn),
            marked_segments: sample.marked_segments.into(),
            ca_state: sample.ca_state,
        })));
        let mut report = reported.entry(who).or_default().report();
        sample.cc.report(&mut |key, value| {
            if report.is_change(key, value) {
                events.buffer(&HostEvent::State(StateReport { of, t_us, key: key.to_owned(), value }));
            }
        });
    }
}

fn fill_in_rtts(transfers: &mut [Ended], samples: &[Sample]) {
    let mut order: Vec<&Sample> = samples.iter().collect();
    order.sort_by_key(|sample| (sample.who, sample.at));
    for Ended { who, report, offset, srtt_us } in transfers {
        let first = order.partition_point(|sample| (sample.who, sample.at.as_micros()) < (*who, report.start_us));
        let during =
            order[first..].iter().take_while(|sample| sample.who == *who && sample.at.as_micros() <= report.end_us);
        let during = during.map(|sample| (sample.srtt_us.map(u64::from), sample.acked_bytes));
        let mut rtts = Histogram::default();
        let mut acked_before = *offset;
        for (rtt_us, acked) in during.chain([(*srtt_us, *offset + report.acked_bytes)]) {
            let segments = acked.saturating_sub(acked_before).div_ceil(MSS.0);
            acked_before = acked_before.max(acked);
            if let Some(rtt_us) = rtt_us {
                rtts.add_many(Span::from_micros(rtt_us), u32::try_from(segments).unwrap_or(u32::MAX));
            }
        }
        if let (None, Some(rtt_us)) = (rtts.mean_us(), *srtt_us) {
            // No segment of the transfer was acknowledged.
            rtts.add(Span::from_micros(rtt_us));
        }
        report.rtt_mean_us = report.rtt_mean_us.or(rtts.mean_us());
        report.rtt_p50_us = rtts.quantile_us(500);
        report.rtt_p95_us = rtts.quantile_us(950);
        report.rtt_p99_us = rtts.quantile_us(990);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{CcInfo, TcpInfo};
    use crate::traffic::socket::transfer::{End, Transfer};
    use thalweg_units::Time;

    const WHO: Who = Who { series: 0, connection: 0 };

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn sample(ms: u64, srtt_ms: u32, acked_segments: u64) -> Sample {
        Sample {
            at: at_ms(ms),
            who: WHO,
            cwnd_packets: 10,
            ssthresh_packets: None,
            inflight_packets: 0,
            ca_state: 0,
            srtt_us: Some(srtt_ms * 1000),
            min_rtt_us: None,
            segments: 0,
            retransmits: 0,
            marked_segments: 0,
            pacing_rate_bps: None,
            delivery_rate_bps: None,
            acked_bytes: acked_segments * MSS.0,
            cc: CcInfo::None,
        }
    }

    /// Returns a transfer from 5 to 100 ms that begins at this offset, in segments.
    fn ended(offset: u64, acked_segments: u64) -> Ended {
        let transfer = Transfer { start: at_ms(5), size: None, offset: offset * MSS.0, before: None, item: None };
        let end = End { at: at_ms(100), acked: acked_segments * MSS.0, info: TcpInfo::default() };
        let report = transfer.report(protocol::Connection { flow: 0, copy: 0, connection: 0 }, 0, &end);
        Ended { who: WHO, report, offset: transfer.offset, srtt_us: Some(50_000) }
    }

    fn mean_ms(ended: Ended, samples: &[Sample]) -> f64 {
        let mut transfers = [ended];
        fill_in_rtts(&mut transfers, samples);
        transfers[0].report.rtt_mean_us.expect("there is a sample") / 1e3
    }

    #[test]
    fn an_rtt_sample_is_weighted_by_the_segments_acknowledged_before_it() {
        // 30 segments at 20 ms, 10 at 100 ms over twice the time, and none at 200 ms.
        let samples = [sample(10, 20, 30), sample(20, 100, 35), sample(30, 100, 40), sample(40, 200, 40)];
        assert_eq!(mean_ms(ended(0, 40), &samples), (30.0 * 20.0 + 10.0 * 100.0) / 40.0);
        // 40 more segments by the end, with the RTT of the end.
        assert_eq!(mean_ms(ended(0, 80), &samples), (1600.0 + 40.0 * 50.0) / 80.0);
    }

    #[test]
    fn bytes_acknowledged_before_a_transfer_are_not_counted() {
        // 20 of the first 30 segments belong to an earlier transfer, as does the sample at 1 ms.
        let samples = [sample(1, 500, 20), sample(10, 20, 30), sample(20, 100, 40)];
        assert_eq!(mean_ms(ended(20, 40), &samples), 60.0);
    }

    #[test]
    fn a_connection_that_delivered_nothing_has_the_rtt_of_its_handshake() {
        assert_eq!(mean_ms(ended(0, 0), &[]), 50.0);
    }
}
