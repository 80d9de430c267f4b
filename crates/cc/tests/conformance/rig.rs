//! A connection without a path: the caller decides which packets are sent, acknowledged and lost; the accounting and
//! the order of events are those of Linux. The window is checked after events.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use thalweg_cc::{Ack, CaState, Conn, Controller, Hz, LostSegment, RateSample, Window};
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

const MAX_INFLIGHT: u64 = 1_000_000;

/// Limits of Illinois's growth, as in Linux: segments per acknowledged segment at a window of one segment, and segments
/// added at once when alpha jumps from its minimum to its maximum.
const ILLINOIS_GROWTH: u64 = 10;
const ILLINOIS_SAVED: u64 = 34;

#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Fills the window; then an ACK arrives that delivers up to `acked` packets and detects up to `lost` losses.
    Ack {
        acked: Packets,
        /// Time since the latest event, and the round-trip time.
        rtt: Span,
        lost: Packets,
        is_delayed: bool,
        /// Kind of rate sample: 0 and 1 a full window, 2 invalid, 3 application-limited.
        sample: u8,
    },
    /// The application sends up to this number of packets and stops.
    SendOnly(Packets),
    Wait(Span),
    /// All losses are repaired: recovery ends.
    Recovered,
    Timeout,
    /// The latest reduction turns out to be spurious.
    Undo,
    /// An ACK carries an ECN echo.
    Ecn,
    /// Everything is acknowledged; after a pause, the application sends a packet.
    Pause(Span),
}

#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub cwnd: Packets,
    /// Round-trip time of the handshake, if it was measured.
    pub rtt: Option<Span>,
    pub mss: u64,
    pub seed: u64,
}

/// The results of a controller after an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    window: Window,
    report: Vec<(&'static str, f64)>,
}

pub struct Rig {
    controller: Box<dyn Controller>,
    rng: Xoshiro256PlusPlus,
    pub window: Window,
    pub state: CaState,
    pub inflight: Packets,
    mss: Bytes,
    now: Time,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
    delivered: Packets,
    delivered_ce: Packets,
    delivered_at: Time,
    lost: Packets,
    /// Packets declared lost and not retransmitted.
    holes: Packets,
    /// Number of packets of the stream that were sent.
    next: Packets,
    last_sent_at: Time,
    is_app_limited: bool,
    /// Whether cwnd was full at the last transmission.
    is_cwnd_limited: bool,
    /// cwnd and ssthresh before the latest reduction.
    prior: Option<(Packets, Packets)>,
    /// Maximum cwnd so far: the upper bound of a restored cwnd.
    largest: Packets,
}

impl Rig {
    pub fn new(name: &str, params: &[(&str, f64)], start: Start) -> Rig {
        let params = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let window =
            Window { cwnd: start.cwnd, ssthresh: Packets::MAX, pacing_rate: Rate::from_mbps(1), is_held_back: false };
        let mut rig = Rig {
            controller: thalweg_cc::build(name, &params).expect("parameters within their range"),
            rng: Xoshiro256PlusPlus::seed_from_u64(start.seed),
            window,
            state: CaState::Open,
            inflight: Packets::ZERO,
            mss: Bytes(start.mss),
            now: Time::ZERO,
            srtt: start.rtt,
            min_rtt: start.rtt,
            delivered: Packets::ZERO,
            delivered_ce: Packets::ZERO,
            delivered_at: Time::ZERO,
            lost: Packets::ZERO,
            holes: Packets::ZERO,
            next: Packets::ZERO,
            last_sent_at: Time::ZERO,
            is_app_limited: false,
            is_cwnd_limited: false,
            prior: None,
            largest: start.cwnd,
        };
        let conn = rig.conn();
        rig.controller.on_established(&conn, &mut rig.window, &mut rig.rng);
        assert_eq!(rig.window.cwnd, start.cwnd, "the initial window is the connection's");
        rig.check();
        rig
    }

    pub fn apply(&mut self, op: Op) -> Trace {
        match op {
            Op::Ack { .. } => {
                self.send_all();
                self.receive(op);
            }
            Op::SendOnly(packets) => {
                self.is_app_limited = true;
                self.send(packets);
            }
            Op::Wait(span) => self.now += span,
            Op::Recovered => self.recover(),
            Op::Timeout => self.time_out(),
            Op::Undo => self.undo(),
            Op::Ecn => self.mark(),
            Op::Pause(span) => self.pause(span),
        }
        self.check();
        self.trace()
    }

    /// Fills the window.
    pub fn send_all(&mut self) {
        self.is_app_limited = false;
        self.send(Packets::MAX);
    }

    pub fn receive(&mut self, op: Op) {
        let Op::Ack { acked, rtt, lost, is_delayed, sample } = op else { panic!("{op:?} is no ACK") };
        self.now += rtt;
        let prior_inflight = self.inflight;
        let acked = acked.min(self.inflight);
        let lost = lost.min(self.inflight - acked);
        self.inflight -= acked + lost;
        self.delivered += acked;
        self.lost += lost;
        self.holes += lost;
        let has_delivered = acked > Packets::ZERO;
        if has_delivered {
            self.delivered_at = self.now;
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| Span((srtt.0 / 8) * 7 + rtt.0 / 8)));
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        }
        let sampled_rtt = Some(rtt).filter(|_| has_delivered);
        self.held("on_packets_acked", |rig, conn| {
            rig.controller.on_packets_acked(conn, acked, sampled_rtt, &mut rig.window);
        });
        for number in 1..=lost.0 {
            let segment =
                LostSegment { inflight_at_send: prior_inflight, lost: Packets(number), is_app_limited: sample == 3 };
            self.held("on_lost", |rig, conn| {
                rig.controller.on_lost(conn, &segment, &mut rig.window, &mut rig.rng);
            });
        }
        if lost > Packets::ZERO && self.state != CaState::Loss {
            self.reduce(CaState::Recovery);
        }
        let window_back = self.delivered.saturating_sub(prior_inflight);
        let rate = RateSample {
            prior_delivered: window_back,
            delivered: self.delivered - window_back,
            lost,
            delivered_ce: Packets::ZERO,
            inflight_at_send: prior_inflight,
            interval: Some(rtt).filter(|_| sample != 2),
            is_app_limited: sample == 3,
        };
        let rate = Some(rate).filter(|_| has_delivered);
        let ack = Ack {
            acked,
            lost,
            prior_inflight,
            rtt: sampled_rtt,
            is_delayed,
            is_marked: false,
            is_probe_answer: false,
            rate,
        };
        self.control(&ack);
        if std::mem::take(&mut self.window.is_held_back) {
            self.is_app_limited = true;
        }
        self.check();
    }

    fn conn(&self) -> Conn {
        Conn {
            now: self.now,
            jiffies: Hz::MILLISECOND_TICK.at(self.now),
            hz: Hz::MILLISECOND_TICK,
            mss: self.mss,
            state: self.state,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            delivered_ce: self.delivered_ce,
            lost: self.lost,
            last_sent_jiffies: Hz::MILLISECOND_TICK.at(self.last_sent_at),
            una_bytes: Bytes((self.next - self.inflight - self.holes).0 * self.mss.0),
            next_bytes: Bytes(self.next.0 * self.mss.0),
            bytes_sent: Bytes(self.next.0 * self.mss.0),
            is_receiver_limited: false,
            is_cwnd_limited: self.is_cwnd_limited,
            is_cwnd_exhausted: self.is_cwnd_limited,
            is_app_limited: self.is_app_limited,
            is_paced: self.controller.paces(),
            next_departure: self.now + self.window.pacing_rate.time_to_send(self.mss),
        }
    }

    fn send(&mut self, packets: Packets) {
        let room = self.window.cwnd.min(Packets(MAX_INFLIGHT)).saturating_sub(self.inflight);
        let count = packets.min(room);
        if count == Packets::ZERO {
            return;
        }
        if self.inflight == Packets::ZERO {
            self.start_transmission();
        }
        let again = count.min(self.holes);
        self.holes -= again;
        self.next += count - again;
        self.inflight += count;
        self.last_sent_at = self.now;
        self.is_cwnd_limited = self.inflight >= self.window.cwnd;
    }

    fn start_transmission(&mut self) {
        let conn = self.conn();
        self.controller.on_transmit_start(&conn, &mut self.window, &mut self.rng);
        assert!(self.window.cwnd <= self.largest, "a restart raised cwnd to {}", self.window.cwnd);
    }

    /// Passes the ACK to the controller, if Linux would, and checks the growth of cwnd.
    fn control(&mut self, ack: &Ack) {
        let governs = self.controller.governs_recovery();
        if !governs && (ack.acked == Packets::ZERO || matches!(self.state, CaState::Recovery | CaState::Cwr)) {
            return;
        }
        let before = self.window.cwnd;
        let conn = self.conn();
        self.controller.on_ack(&conn, ack, &mut self.window, &mut self.rng);
        let floor = if governs { Packets(4).max(self.inflight).max(self.largest) } else { before };
        // Illinois may add more, since segments acknowledged earlier had not raised cwnd.
        let is_illinois = self.controller.name() == "illinois";
        let (fastest, saved) = if is_illinois { (ILLINOIS_GROWTH, ILLINOIS_SAVED) } else { (1, 1) };
        let most = floor + Packets(ack.acked.0 * fastest + saved);
        assert!(self.window.cwnd <= most, "from {before} to {}, for {:?}", self.window.cwnd, ack);
    }

    /// Calls the controller for an event that must not change cwnd.
    fn held(&mut self, what: &str, call: impl FnOnce(&mut Rig, &Conn)) {
        let before = self.window.cwnd;
        let conn = self.conn();
        call(self, &conn);
        assert_eq!(self.window.cwnd, before, "{what} changed cwnd in {:?}", self.state);
    }

    /// Changes the state of recovery. A controller that governs recovery may restore cwnd when a state ends.
    fn enter(&mut self, next: CaState) {
        let is_over = matches!(self.state, CaState::Loss | CaState::Recovery) && next == CaState::Open;
        if self.controller.governs_recovery() && is_over {
            let (before, conn) = (self.window.cwnd, self.conn());
            self.controller.on_state(&conn, next, &mut self.window, &mut self.rng);
            let after = self.window.cwnd;
            assert!(before <= after && after <= self.largest, "on_state moved cwnd from {before} to {after}");
        } else {
            self.held("on_state", |rig, conn| rig.controller.on_state(conn, next, &mut rig.window, &mut rig.rng));
        }
        self.state = next;
    }

    /// Handles congestion: requests ssthresh unless cwnd is already being reduced.
    fn reduce(&mut self, next: CaState) {
        if self.state == next {
            return;
        }
        if !matches!(self.state, CaState::Recovery | CaState::Cwr) {
            self.ask_for_ssthresh(next == CaState::Cwr);
        }
        self.enter(next);
        if !self.controller.governs_recovery() {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
    }

    fn ask_for_ssthresh(&mut self, is_mark: bool) {
        self.prior = Some((self.window.cwnd, self.window.ssthresh));
        let conn = self.conn();
        self.window.ssthresh = if is_mark {
            self.controller.ssthresh_on_mark(&conn, &self.window)
        } else {
            self.controller.ssthresh(&conn, &self.window)
        };
        assert!(self.window.ssthresh >= Packets(2), "ssthresh {}", self.window.ssthresh);
        let bound = if self.controller.governs_recovery() { Packets::MAX } else { self.window.cwnd.max(Packets(2)) };
        assert!(self.window.ssthresh <= bound, "ssthresh {} for cwnd {}", self.window.ssthresh, self.window.cwnd);
    }

    fn mark(&mut self) {
        self.delivered_ce = (self.delivered_ce + Packets(1)).min(self.delivered);
        if self.state == CaState::Open {
            self.reduce(CaState::Cwr);
        }
    }

    fn recover(&mut self) {
        if self.state == CaState::Open {
            return;
        }
        if self.state != CaState::Loss && !self.controller.governs_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.delivered += self.holes;
        self.holes = Packets::ZERO;
        self.enter(CaState::Open);
    }

    fn time_out(&mut self) {
        self.now += Span::from_millis(200);
        if self.state != CaState::Loss {
            self.ask_for_ssthresh(false);
            self.held("on_timeout", |rig, conn| rig.controller.on_timeout(conn, &mut rig.window));
        }
        self.lost += self.inflight;
        self.holes += self.inflight;
        self.inflight = Packets::ZERO;
        self.window.cwnd = Packets(1);
        self.enter(CaState::Loss);
    }

    fn undo(&mut self) {
        let Some((cwnd, ssthresh)) = self.prior.take() else { return };
        let conn = self.conn();
        let undone = self.controller.undo(&conn, cwnd, &self.window);
        let (least, most) = match self.controller.name() {
            // The controller restores its saved window, which may be that before ProbeRTT.
            "bbr3" => (Packets(1), self.largest),
            _ if self.controller.governs_recovery() => (self.window.cwnd.min(cwnd), self.largest),
            _ => (self.window.cwnd.min(cwnd), self.window.cwnd.max(cwnd)),
        };
        assert!(
            (least..=most).contains(&undone),
            "{} undone from {} to {undone}; before the reduction it was {cwnd}",
            self.controller.name(),
            self.window.cwnd
        );
        self.window.cwnd = undone;
        self.window.ssthresh = self.window.ssthresh.max(ssthresh);
        if self.state != CaState::Open {
            self.enter(CaState::Open);
        }
    }

    fn pause(&mut self, span: Span) {
        self.delivered += self.inflight;
        self.delivered_at = self.now;
        self.inflight = Packets::ZERO;
        self.is_app_limited = true;
        self.now += span;
        self.send(Packets(1));
    }

    fn check(&mut self) {
        let window = &self.window;
        assert!(window.cwnd >= Packets(1), "cwnd {}", window.cwnd);
        assert!(window.ssthresh >= Packets(2), "ssthresh {}", window.ssthresh);
        if self.controller.paces() {
            assert!(window.pacing_rate > Rate::ZERO, "nothing would ever leave");
        } else {
            assert_eq!(window.pacing_rate, Rate::from_mbps(1), "the pacing rate is the connection's");
        }
        assert!(self.controller.min_burst(window) >= Packets(1));
        assert!(self.controller.sndbuf_factor() >= 1);
        self.largest = self.largest.max(window.cwnd);
    }

    fn trace(&self) -> Trace {
        let conn = self.conn();
        let mut report = Vec::new();
        self.controller.report(&conn, &mut |name, value| report.push((name, value)));
        for (name, value) in &report {
            assert!(value.is_finite() && *value >= 0.0, "{name} is {value}");
        }
        Trace { window: self.window, report }
    }
}
