//! Proportional rate reduction (RFC 6937, with the reduction bound of its revision, draft-ietf-tcpm-prr-rfc6937bis):
//! cwnd falls to ssthresh gradually while segments are being acknowledged.
//!
//! While more than ssthresh is in flight, sending is proportional to delivery. Below it, the window refills: by slow
//! start on ACKs that move the left edge and show no further loss, by packet conservation (one segment sent per
//! delivered segment) otherwise.

use thalweg_units::Packets;

#[derive(Debug, Default)]
pub(super) struct Prr {
    /// cwnd before the reduction.
    pub prior_cwnd: Packets,
    /// Segments delivered since the reduction began.
    delivered: u64,
    /// Segments sent since the reduction began.
    sent: u64,
}

impl Prr {
    /// Starts a reduction from `cwnd`.
    pub fn begin(&mut self, cwnd: Packets) {
        *self = Prr { prior_cwnd: cwnd, delivered: 0, sent: 0 };
    }

    /// Records that a segment was sent during the reduction.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Returns cwnd after an ACK that delivered `delivered` segments. `may_grow`: the ACK advanced the left edge and
    /// showed no loss.
    pub fn cwnd(&mut self, delivered: Packets, may_grow: bool, in_flight: Packets, ssthresh: Packets) -> Packets {
        self.delivered += delivered.0;
        let unsent = if in_flight > ssthresh {
            let share = u128::from(ssthresh.0) * u128::from(self.delivered);
            let share = share.div_ceil(u128::from(self.prior_cwnd.0.max(1)));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.sent)
        } else {
            let room = ssthresh.0 - in_flight.0;
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered.0);
            (conserved + u64::from(may_grow)).min(room)
        };
        // The first retransmission is always sent.
        let unsent = unsent.max(u64::from(self.sent == 0));
        Packets((in_flight.0 + unsent).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prr_sends_proportionally_while_inflight_exceeds_ssthresh() {
        let mut prr = Prr::default();
        prr.begin(Packets(100));
        let mut in_flight = 100;
        let mut sent = 0;
        for _ in 0..60 {
            in_flight -= 1;
            let cwnd = prr.cwnd(Packets(1), false, Packets(in_flight), Packets(50));
            let room = cwnd.0 - in_flight;
            (0..room).for_each(|_| prr.on_sent());
            in_flight += room;
            sent += room;
        }
        assert_eq!(sent, 30, "half as many leave as arrive");
    }

    #[test]
    fn below_ssthresh_prr_refills_by_at_most_one_segment_more_than_was_delivered() {
        let mut prr = Prr::default();
        prr.begin(Packets(100));
        prr.on_sent();
        assert_eq!(prr.cwnd(Packets(1), true, Packets(10), Packets(50)), Packets(12));
        assert_eq!(prr.cwnd(Packets(1), false, Packets(10), Packets(50)), Packets(11));
        assert_eq!(prr.cwnd(Packets(9), true, Packets(49), Packets(50)), Packets(50));
    }

    #[test]
    fn the_first_retransmission_is_sent_immediately() {
        let mut prr = Prr::default();
        prr.begin(Packets(100));
        assert_eq!(prr.cwnd(Packets(1), false, Packets(99), Packets(1)), Packets(100));
    }
}
