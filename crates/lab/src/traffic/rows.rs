//! Rows, made from what the generator and the sampling thread kept, when the experiment is over.
//!
//! Round-trip times of a transfer are those smoothed ones (`tcpi_srtt`) that were sampled during it, and the one at its end.
//! The kernel tells no more: a short transfer has that one only. `rtt_min` is the kernel's own minimum (`tcpi_min_rtt`),
//! which is the connection's, also for its later transfers.

use crate::host::Outbox;
use crate::protocol::{self, Event, FlowReport, SampleReport, StateReport};
use crate::traffic::ports::Who;
use crate::traffic::sampling::Sample;
use std::collections::HashMap;
use thalweg_trace::Histogram;
use thalweg_units::Span;

/// A transfer that has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) who: Who,
    pub(super) report: FlowReport,
    /// At the end.
    pub(super) srtt_us: Option<u64>,
}

/// Tells all rows. `copies` are flow and copy of each series; `syn_retransmits` are there where they are not zero.
pub(super) fn tell(
    outbox: &Outbox,
    copies: &dyn Fn(Who) -> (usize, u64),
    mut transfers: Vec<Ended>,
    samples: &[Sample],
    syn_retransmits: &HashMap<Who, u64>,
) {
    fill_in_rtts(&mut transfers, samples);
    for transfer in transfers {
        outbox.row(&Event::Flow(Box::new(transfer.report)));
    }
    for sample in samples {
        let who = sample.who;
        let (flow, copy) = copies(who);
        let of = protocol::Connection { flow, copy, connection: who.connection.into() };
        let of_syn = syn_retransmits.get(&who).copied().unwrap_or(0);
        let t_us = sample.at.as_micros();
        outbox.row(&Event::Sample(Box::new(SampleReport {
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
            ca_state: sample.ca_state,
        })));
        sample.cc.report(&mut |key, value| {
            outbox.row(&Event::State(StateReport { of, t_us, key: key.to_owned(), value }));
        });
    }
}

fn fill_in_rtts(transfers: &mut [Ended], samples: &[Sample]) {
    let mut order: Vec<&Sample> = samples.iter().collect();
    order.sort_by_key(|sample| (sample.who, sample.at));
    for Ended { who, report, srtt_us } in transfers {
        let first = order.partition_point(|sample| (sample.who, sample.at.as_micros()) < (*who, report.start_us));
        let during =
            order[first..].iter().take_while(|sample| sample.who == *who && sample.at.as_micros() <= report.end_us);
        let mut rtts = Histogram::default();
        for rtt_us in during.filter_map(|sample| sample.srtt_us.map(u64::from)).chain(*srtt_us) {
            rtts.add(Span::from_micros(rtt_us));
        }
        report.rtt_mean_us = report.rtt_mean_us.or(rtts.mean_us());
        report.rtt_p50_us = rtts.quantile_us(500);
        report.rtt_p95_us = rtts.quantile_us(950);
        report.rtt_p99_us = rtts.quantile_us(990);
    }
}
