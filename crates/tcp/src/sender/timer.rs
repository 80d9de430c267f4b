//! The single timer of a connection: retransmission timeout, loss probe (TLP, RFC 8985 section 7) or the end of RACK's
//! reordering window. As in Linux, setting one of them cancels another.

use super::rtt::{RTO_INITIAL, RTO_MAX, RTO_MIN};
use super::work::{Push, Rexmit};
use super::{Handshake, Sender, TIMEOUT_MIN, Timer};
use crate::tick::expiry;
use rand_core::Rng;
use thalweg_cc::CaState;
use thalweg_units::{Packets, Span, Time};

impl Sender {
    /// Returns the time at which the connection must be woken.
    pub fn next_wake(&self) -> Option<Time> {
        let next = match (self.timer_wake(), self.pacing_wake()) {
            (Some(timer), Some(departure)) => Some(timer.min(departure)),
            (timer, departure) => timer.or(departure),
        };
        match self.application_wake() {
            Some(busy) => Some(next.map_or(busy, |next| next.min(busy))),
            None => next,
        }
    }

    /// Returns the departure of the next burst, if one is waiting.
    pub fn pacing_wake(&self) -> Option<Time> {
        self.pacer.is_waiting.then_some(self.pacer.departure)
    }

    /// Returns the expiry of the timer.
    pub fn timer_wake(&self) -> Option<Time> {
        self.timer.map(|(at, _)| at)
    }

    /// Returns the end of the application's current write, if it takes time.
    pub fn application_wake(&self) -> Option<Time> {
        self.sndbuf.busy_until()
    }

    /// Handles all timers at the time that [`Sender::next_wake`] returned. Call [`Sender::poll_transmit`] afterwards.
    pub fn on_wake(&mut self, now: Time, rng: &mut dyn Rng) {
        self.on_pacing(now);
        self.on_timer(now, rng);
    }

    /// Releases the burst that waits for its departure, if that is due. Call [`Sender::poll_transmit`] afterwards.
    pub fn on_pacing(&mut self, now: Time) {
        if self.pacer.is_waiting && self.pacer.departure <= now {
            self.pacer.is_waiting = false;
            if self.board.lost_out() > self.board.retrans_out() && self.window.cwnd > self.board.in_flight() {
                self.work.rexmit = Rexmit::Lost;
            }
            self.work.push = Push::All;
            self.work.is_stock_due = true;
        }
    }

    /// Handles the timer, if it has expired. Call [`Sender::poll_transmit`] afterwards.
    pub fn on_timer(&mut self, now: Time, rng: &mut dyn Rng) {
        let Some((_, timer)) = self.timer.filter(|(at, _)| *at <= now) else {
            return;
        };
        if self.board.is_watched {
            self.check_app_limited();
        }
        match (timer, self.handshake) {
            (Timer::Retransmission, Handshake::SynSent) => self.on_syn_timeout(now),
            (Timer::Retransmission, _) => self.on_retransmission_timeout(now, rng),
            (Timer::LossProbe, _) => self.on_probe_timeout(now),
            (Timer::Reordering, _) => self.on_reordering_timeout(now, rng),
        }
    }

    /// Sets the timer to expire in `after`, rounded up to ticks.
    pub(super) fn set_timer(&mut self, now: Time, timer: Timer, after: Span) {
        self.timer = Some((expiry(now, after), timer));
    }

    /// Sets the timer to expire `after` the next departure that pacing allows; as in Linux, the time until that
    /// departure is rounded down to milliseconds.
    pub(super) fn set_timer_after_pacing(&mut self, now: Time, timer: Timer, after: Span) {
        let pacing_delay = if self.is_paced { self.pacer.departure.since(now) } else { Span::ZERO };
        let after = (after + Span::from_millis(pacing_delay.as_millis())).min(RTO_MAX);
        self.set_timer(now, timer, after);
    }

    pub(super) fn pending_timer(&self) -> Option<Timer> {
        self.timer.map(|(_, timer)| timer)
    }

    /// Resets the timer after an ACK: to the loss probe if one applies, otherwise to the retransmission timeout.
    pub(super) fn reset_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Sets the timer to the retransmission timeout, or stops it if nothing is outstanding. If another timer was set in
    /// between, the timeout counts from the last transmission of the first segment.
    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.timer = None;
            return;
        }
        let after = match self.pending_timer() {
            Some(Timer::Reordering | Timer::LossProbe) => self.until_rto(now).max(Span(1_000)),
            _ => self.rtt.rto(),
        };
        self.set_timer_after_pacing(now, Timer::Retransmission, after);
    }

    /// Returns the time until the first segment has been in flight for a retransmission timeout.
    fn until_rto(&self, now: Time) -> Span {
        self.board.head().map_or(Span::ZERO, |head| (head.sent_at + self.rtt.rto()).since(now))
    }

    /// Sets the timer to the loss probe, if one applies. `is_rto_fresh`: the retransmission timeout would restart now.
    pub(super) fn schedule_probe(&mut self, now: Time, is_rto_fresh: bool) -> bool {
        let out = self.board.packets_out();
        if out == 0 || !matches!(self.state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let mut after = match self.rtt.srtt() {
            None => RTO_INITIAL,
            // The ACK of a single segment may be delayed.
            Some(srtt) if out == 1 => srtt + srtt + RTO_MIN,
            Some(srtt) => srtt + srtt + TIMEOUT_MIN,
        };
        let rto = if is_rto_fresh { self.rtt.rto() } else { self.until_rto(now) };
        if rto > Span::ZERO {
            after = after.min(rto);
        }
        self.set_timer_after_pacing(now, Timer::LossProbe, after);
        true
    }

    fn on_probe_timeout(&mut self, now: Time) {
        self.work.probe = true;
        // A fallback if the caller does not poll; sending the probe resets the timer.
        self.set_timer(now, Timer::LossProbe, self.rtt.rto());
    }

    fn on_reordering_timeout(&mut self, now: Time, rng: &mut dyn Rng) {
        let before = self.board.in_flight();
        let window = self.reordering_window();
        self.rack.detect(now, &mut self.board, window);
        self.report_losses(now, rng);
        if self.board.in_flight() != before {
            if self.state != CaState::Recovery {
                self.enter_recovery(now, rng, false);
                if !self.is_governed {
                    self.reduce_cwnd(Packets(1), false);
                }
            }
            self.work.rexmit = Rexmit::Lost;
        }
        if self.pending_timer() != Some(Timer::Retransmission) {
            self.rearm_rto(now);
        }
    }
}
