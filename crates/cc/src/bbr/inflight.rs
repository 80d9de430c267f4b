//! The target for data in flight, and its prediction at the next departure.

use super::state::Bbr;
use crate::fixed_point::{Bandwidth, Gain};
use crate::{Conn, Window};
use thalweg_units::{Bytes, Packets};

/// The initial window (RFC 6928). Used in place of the BDP before the first RTT sample.
pub(super) const INITIAL_CWND: Packets = Packets(10);

/// Below this pacing rate the minimum burst is one packet; otherwise it is two.
const SLOW_PACING_BPS: u64 = 1_200_000;

/// Maximum burst: the payload of a 64 KiB packet of segmentation offload.
const MAX_BURST: Bytes = Bytes(65_215);

const MAX_BURST_PACKETS: u64 = 127;

impl Bbr {
    /// Returns `gain` times the bandwidth-delay product at `bw`, rounded up; before the first RTT sample,
    /// [`INITIAL_CWND`] without the gain.
    pub(super) fn bdp(&self, bw: Bandwidth, gain: Gain) -> Packets {
        self.min_rtt.rtt.map_or(INITIAL_CWND, |min_rtt| bw.packets_in_with_gain(min_rtt, gain))
    }

    /// Returns `target` plus headroom for three bursts: one may wait in the host's queue, one may be in its
    /// segmentation offload, and one may be held back by the receiver's offload. The result is rounded up to an even
    /// number, for delayed ACKs. Two packets are added when probing, so that a small BDP can be probed at all.
    pub(super) fn with_headroom(&self, target: Packets, conn: &Conn, window: &Window) -> Packets {
        let with_bursts = target.0.saturating_add(3 * burst(conn, window).0);
        let even = with_bursts.saturating_add(with_bursts % 2);
        let probe = if self.is_probing() { 2 } else { 0 };
        Packets(even) + Packets(probe)
    }

    /// Returns the target for packets in flight: `gain` times the BDP at `bw`, with headroom.
    pub(super) fn target_inflight(&self, bw: Bandwidth, gain: Gain, conn: &Conn, window: &Window) -> Packets {
        self.with_headroom(self.bdp(bw, gain), conn, window)
    }

    /// Predicts the packets in flight when the next packet departs, from `inflight` now: pacing may have scheduled
    /// departures ahead, and packets are delivered until then. With a pacing gain above 1, the departing burst counts.
    pub(super) fn inflight_at_departure(&self, inflight: Packets, conn: &Conn, window: &Window) -> Packets {
        let delivered = self.bandwidth().packets_in(conn.next_departure.since(conn.now));
        let departing = if self.pacing_gain > Gain::UNIT { burst(conn, window) } else { Packets::ZERO };
        (inflight + departing).saturating_sub(delivered)
    }
}

pub(super) fn min_burst(window: &Window) -> Packets {
    Packets(if window.pacing_rate.0 < SLOW_PACING_BPS { 1 } else { 2 })
}

/// Returns the number of packets in a burst: those that leave in 1/1024 s, within limits.
fn burst(conn: &Conn, window: &Window) -> Packets {
    let bytes = ((window.pacing_rate.0 / 8) >> 10).min(MAX_BURST.0);
    Packets((bytes / conn.mss.0).max(min_burst(window).0).min(MAX_BURST_PACKETS))
}
