//! The congestion window.
//!
//! cwnd grows by the number of acknowledged packets towards its target, cwnd_gain times the BDP, with headroom for
//! bursts and for aggregated ACKs. Once the pipe is full, the target is also its upper bound. In the first round of
//! recovery one packet is sent per delivered packet (packet conservation). After recovery, the earlier value of cwnd is
//! restored.

use super::inflight::INITIAL_CWND;
use super::recovery::is_recovering;
use super::settings::MIN_CWND;
use super::state::{Bbr, Mode};
use crate::fixed_point::{Bandwidth, Gain};
use crate::{Ack, CaState, Conn, Window};
use thalweg_units::Packets;

impl Bbr {
    /// Saves cwnd for the time after recovery or ProbeRTT.
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let is_undisturbed = !is_recovering(self.recovery.prior_state) && self.mode != Mode::ProbeRtt;
        let kept = if is_undisturbed { Packets::ZERO } else { self.recovery.prior_cwnd };
        self.recovery.prior_cwnd = kept.max(window.cwnd);
    }

    pub(super) fn set_cwnd(&mut self, conn: &Conn, ack: &Ack, bw: Bandwidth, gain: Gain, window: &mut Window) {
        if ack.acked > Packets::ZERO {
            let cwnd = self.through_recovery(conn, ack, window.cwnd);
            window.cwnd = if self.recovery.is_conserving {
                cwnd.max(conn.inflight + ack.acked)
            } else {
                self.towards_target(conn, ack, cwnd, self.bdp(bw, gain), window).max(MIN_CWND)
            };
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = window.cwnd.min(self.loss_bound.max_cwnd(self.is_probing()));
    }

    /// Returns cwnd after losses and changes of the recovery state.
    fn through_recovery(&mut self, conn: &Conn, ack: &Ack, cwnd: Packets) -> Packets {
        let prior_state = std::mem::replace(&mut self.recovery.prior_state, conn.state);
        let cwnd = if ack.lost > Packets::ZERO { cwnd.saturating_sub(ack.lost).max(Packets(1)) } else { cwnd };
        if conn.state == CaState::Recovery && prior_state != CaState::Recovery {
            self.recovery.is_conserving = true;
            self.round.restart(conn);
            return conn.inflight + ack.acked;
        }
        if is_recovering(prior_state) && !is_recovering(conn.state) {
            self.recovery.is_conserving = false;
            return cwnd.max(self.recovery.prior_cwnd);
        }
        cwnd
    }

    fn towards_target(&self, conn: &Conn, ack: &Ack, cwnd: Packets, bdp: Packets, window: &Window) -> Packets {
        let full = self.full_pipe.is_reached;
        let bunches =
            if full { self.aggregation.room(self.bandwidth(), self.settings.aggregation_gain) } else { Packets::ZERO };
        let target = self.with_headroom(bdp + bunches, conn, window);
        if full {
            return (cwnd + ack.acked).min(target);
        }
        if cwnd < target || conn.delivered < INITIAL_CWND { cwnd + ack.acked } else { cwnd }
    }
}
