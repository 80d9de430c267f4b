//! Reno: slow start, one segment more per round trip after it, half of it at congestion.
//!
//! ```text
//!   cwnd < ssthresh    cwnd += acked                   doubles per round trip
//!   otherwise          cwnd += acked / cwnd            grows by one per round trip
//!   congestion         ssthresh = max(cwnd / 2, 2)
//! ```
//!
//! Source: RFC 5681. What happens within recovery (NewReno's part, RFC 6582) is the connection's.
//!
//! Deviations from RFC 5681, all of them Linux's: cwnd counts segments; ssthresh is half of cwnd and not of what is
//! under way; cwnd grows only while it is what limits the connection (RFC 7661 in spirit).

use crate::growth::{self, AdditiveIncrease};
use crate::{Ack, CaState, Conn, Controller, Window};
use rand_core::Rng;
use thalweg_units::Packets;

/// The state of Reno beyond cwnd and ssthresh.
#[derive(Debug, Default)]
pub(crate) struct Reno {
    increase: AdditiveIncrease,
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        let Some(acked) = growth::beyond_slow_start(conn, ack, window) else { return };
        let per_step = window.cwnd;
        self.increase.grow(window, per_step, acked);
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        Packets(window.cwnd.0 / 2).max(Packets(2))
    }

    fn on_state(&mut self, _conn: &Conn, next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {
        if next == CaState::Loss {
            self.increase.reset();
        }
    }

    fn kernel_words(&self, take: &mut dyn FnMut(&'static str, u64)) {
        take("snd_cwnd_cnt", self.increase.credit().0);
    }
}
