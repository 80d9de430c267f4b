//! Reno: slow start, then one segment more per round trip, and half the window at congestion.
//!
//! ```text
//!   cwnd < ssthresh    cwnd += acked                   doubles per round trip
//!   otherwise          cwnd += acked / cwnd            grows by one per round trip
//!   loss               ssthresh = max(cwnd / 2, 2)
//!   ECN mark           ssthresh = max(cwnd * beta_ecn, 2)
//! ```
//!
//! Source: RFC 5681. The connection handles recovery (NewReno, RFC 6582). `beta_ecn` is the milder reduction on ECN
//! marks of RFC 8511 (ABE), which Linux does not have.
//!
//! Linux's deviations from RFC 5681: cwnd counts segments; ssthresh is half of cwnd and not of the data in flight; cwnd
//! grows only while it limits the sender (similar to RFC 7661).

use crate::growth::{self, AdditiveIncrease, UNIT};
use crate::{Ack, CaState, Conn, Controller, Param, Window};
use rand_core::Rng;
use thalweg_units::Packets;

pub(crate) const PARAMS: &[Param] = &[Param {
    name: "beta_ecn",
    about: "factor by which an ECN mark multiplies the window; default: the factor for a loss (RFC 8511: 0.8)",
    default: 0.5,
    min: 0.5,
    max: 0.99,
    is_whole: false,
}];

/// Reno's state, except cwnd and ssthresh.
#[derive(Debug)]
pub(crate) struct Reno {
    increase: AdditiveIncrease,
    /// 1024 times the factor by which a mark multiplies the window.
    beta_ecn: u64,
}

impl Reno {
    /// Creates Reno that multiplies the window by `beta_ecn` on a mark.
    pub fn new(beta_ecn: f64) -> Reno {
        Reno { increase: AdditiveIncrease::default(), beta_ecn: growth::in_1024ths(beta_ecn) }
    }
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _rng: &mut dyn Rng) {
        self.increase.on_ack(conn, ack, window);
    }

    fn ssthresh(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        growth::half(window.cwnd)
    }

    fn ssthresh_on_mark(&mut self, _conn: &Conn, window: &Window) -> Packets {
        self.increase.reset();
        Packets(growth::scale(window.cwnd.0, self.beta_ecn, UNIT)).max(Packets(2))
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
