//! The target for packets in flight, and its prediction at the next departure (5.6.4.2).

use super::cycle::Phase;
use super::state::{Bbr3, MIN_CWND, Mode};
use crate::fixed_point::{Bandwidth, Gain};
use crate::{Conn, Window};
use thalweg_units::{Bytes, Packets, Span};

/// Maximum burst: the payload of a 64 KiB packet of segmentation offload.
const MAX_BURST: Bytes = Bytes(65_215);

/// Bytes added to a burst on short paths; halved for every 512 us of round-trip time.
const BURST_BY_RTT: u64 = 1 << 16;
const RTT_SHIFT: u32 = 9;

const MIN_BURST: u64 = 2;

impl Bbr3 {
    /// Returns `gain` times the bandwidth-delay product at `bw`, rounded up (BDPMultiple); before the first RTT sample,
    /// the initial cwnd without the gain.
    pub(super) fn bdp(&self, bw: Bandwidth, gain: Gain) -> Packets {
        self.min_rtt.rtt.map_or(self.initial_cwnd, |min_rtt| bw.packets_in_with_gain(min_rtt, gain))
    }

    /// Returns `target`, but at least three bursts: one may wait in the host's queue, one may be in its segmentation
    /// offload, and one may be held back by the receiver's offload. Two packets are added in phase Up, so that a small
    /// BDP can be probed at all (QuantizationBudget).
    pub(super) fn with_bursts(&self, target: Packets, conn: &Conn, window: &Window) -> Packets {
        let probe = if self.mode == Mode::ProbeBw && self.cycle.phase == Phase::Up { 2 } else { 0 };
        target.max(Packets(3 * self.burst(conn, window).0)).max(MIN_CWND) + Packets(probe)
    }

    /// Returns the target for packets in flight: `gain` times the BDP at `bw`, at least three bursts (Inflight).
    pub(super) fn target_inflight(&self, bw: Bandwidth, gain: Gain, conn: &Conn, window: &Window) -> Packets {
        self.with_bursts(self.bdp(bw, gain), conn, window)
    }

    /// Returns the BDP or cwnd, whichever is lower (TargetInflight). Linux's variant uses the target of
    /// [`Bbr3::target_inflight`] instead of the BDP.
    pub(super) fn response_target(&self, conn: &Conn, window: &Window) -> Packets {
        let bw = self.bandwidth();
        let bdp = if self.variant.targets_with_bursts {
            self.target_inflight(bw, Gain::UNIT, conn, window)
        } else {
            self.bdp(bw, Gain::UNIT)
        };
        bdp.min(window.cwnd)
    }

    /// Predicts the packets in flight when the next packet departs, from `inflight` now: pacing may have scheduled
    /// departures ahead, and packets are delivered until then. With a pacing gain above 1, the departing burst counts.
    pub(super) fn inflight_at_departure(&self, inflight: Packets, conn: &Conn, window: &Window) -> Packets {
        let delivered = self.bandwidth().packets_in(conn.next_departure.since(conn.now));
        let departing = if self.pacing_gain > Gain::UNIT { self.burst(conn, window) } else { Packets::ZERO };
        (inflight + departing).saturating_sub(delivered)
    }

    /// Returns the number of packets in a burst: those that leave in 1/1024 s, and more on short paths (5.6.3).
    fn burst(&self, conn: &Conn, window: &Window) -> Packets {
        let shortness = self.min_rtt.rtt.map_or(u64::MAX, Span::as_micros) >> RTT_SHIFT;
        let by_rtt = if shortness < 32 { BURST_BY_RTT >> shortness } else { 0 };
        let bytes = ((window.pacing_rate.0 / 8) >> 10).saturating_add(by_rtt).min(MAX_BURST.0);
        Packets((bytes / conn.mss.0).max(MIN_BURST))
    }
}
