//! A sender on an ideal path.
//!
//! It is simpler than TCP: every packet is acknowledged immediately unless the [`Path`] delays ACKs, and the receive
//! window is never a limit. A packet counts as lost when one that was sent at least three packets later has arrived. At
//! a loss, cwnd falls to ssthresh in one step unless the controller governs recovery.

use crate::path::{Network, Path};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeSet, VecDeque};
use thalweg_cc::{Ack, CaState, Conn, Controller, Hz, LostSegment, RateSample, Window};
use thalweg_units::{Bytes, MSS, Packets, Rate, Span, Time};

/// Time from the last transmission to the expiry of the retransmission timer.
const TIMEOUT: Span = Span::from_secs(1);

/// The state directly after an ACK.
#[derive(Clone, Debug)]
pub struct Row {
    pub at: Time,
    pub cwnd: Packets,
    pub ssthresh: Packets,
    pub inflight: Packets,
    pub acked: Packets,
    pub rtt: Span,
    pub pacing_rate: Rate,
    pub delivered: Packets,
    pub lost: Packets,
    pub state: CaState,
    pub report: Vec<(&'static str, f64)>,
}

impl Row {
    /// Returns a value that the controller reports.
    pub fn value(&self, name: &str) -> f64 {
        let entry = self.report.iter().find(|(reported, _)| *reported == name);
        entry.unwrap_or_else(|| panic!("{name} is not reported: {:?}", self.report)).1
    }
}

#[derive(Debug)]
struct Packet {
    number: u64,
    sequence: u64,
    sent_at: Time,
    first_sent_at: Time,
    delivered: Packets,
    delivered_at: Time,
    is_app_limited: bool,
    is_lone: bool,
    inflight_at_send: Packets,
    lost: Packets,
    acked_at: Time,
}

/// A packet that was dropped.
#[derive(Debug)]
struct Dropped {
    number: u64,
    sequence: u64,
    inflight_at_send: Packets,
    lost: Packets,
    is_app_limited: bool,
}

#[derive(Debug)]
pub struct Pipe {
    network: Network,
    controller: Box<dyn Controller>,
    rng: Xoshiro256PlusPlus,
    pub window: Window,
    pub rows: Vec<Row>,
    now: Time,
    state: CaState,
    /// Packets in flight that will arrive, in order of transmission.
    flight: VecDeque<Packet>,
    /// Dropped packets not yet declared lost.
    dropped: VecDeque<Dropped>,
    retransmit: BTreeSet<u64>,
    arrived: BTreeSet<u64>,
    una: u64,
    next: u64,
    transmissions: u64,
    recovery_point: u64,
    delivered: Packets,
    delivered_at: Time,
    lost: Packets,
    first_sent_at: Time,
    last_sent_at: Time,
    next_departure: Time,
    /// Time and packet from which the application's bursts are counted.
    bursts_from: (Time, u64),
    app_limited_until: Packets,
    /// Whether the sender was cwnd-limited in the latest window, and the maximum number of packets in flight in it.
    is_cwnd_limited: bool,
    most_inflight: u64,
    usage_point: u64,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
}

impl Pipe {
    /// Creates a connection that has just been established, with an initial window of 10.
    pub fn new(path: Path, cc: &str, params: &[(&str, f64)]) -> Pipe {
        Pipe::with_seed(path, cc, params, 1)
    }

    /// Like [`Pipe::new`], with a different seed.
    pub fn with_seed(path: Path, cc: &str, params: &[(&str, f64)], seed: u64) -> Pipe {
        let params = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        Pipe::around(path, thalweg_cc::build(cc, &params).expect("a controller of the catalog"), seed)
    }

    /// Like [`Pipe::with_seed`], with a controller that the caller has built.
    pub fn around(path: Path, controller: Box<dyn Controller>, seed: u64) -> Pipe {
        let window = Window { cwnd: Packets(10), ssthresh: Packets::MAX, pacing_rate: Rate::ZERO, is_held_back: false };
        let rtt = path.rtt;
        let mut pipe = Pipe {
            controller,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            window,
            rows: Vec::new(),
            now: Time::ZERO + rtt,
            state: CaState::Open,
            flight: VecDeque::new(),
            dropped: VecDeque::new(),
            retransmit: BTreeSet::new(),
            arrived: BTreeSet::new(),
            una: 0,
            next: 0,
            transmissions: 0,
            recovery_point: 0,
            delivered: Packets::ZERO,
            delivered_at: Time::ZERO,
            lost: Packets::ZERO,
            first_sent_at: Time::ZERO,
            last_sent_at: Time::ZERO + rtt,
            next_departure: Time::ZERO,
            bursts_from: (Time::ZERO, 0),
            app_limited_until: Packets::ZERO,
            is_cwnd_limited: false,
            most_inflight: 0,
            usage_point: 0,
            srtt: Some(rtt),
            min_rtt: Some(rtt),
            network: Network::new(path),
        };
        let conn = pipe.conn();
        pipe.controller.on_established(&conn, &mut pipe.window, &mut pipe.rng);
        pipe
    }

    pub fn run_until(&mut self, end: Time) -> &mut Pipe {
        while self.step_before(end) {}
        self
    }

    /// Processes the next event.
    pub fn step(&mut self) {
        assert!(self.step_before(Time::MAX), "something always happens next");
    }

    fn step_before(&mut self, end: Time) -> bool {
        let ack = self.flight.front().map(|packet| packet.acked_at);
        let send = self.next_send();
        match (ack, send) {
            (Some(at), _) if at <= send.unwrap_or(Time::MAX) && at <= end => self.receive_ack(at),
            (_, Some(at)) if at <= end => self.send(at),
            (None, None) if !self.dropped.is_empty() && self.last_sent_at + TIMEOUT <= end => {
                self.now = self.last_sent_at + TIMEOUT;
                self.time_out();
            }
            _ => return false,
        }
        true
    }

    /// Returns the path, for changes during a run.
    pub fn path(&mut self) -> &mut Path {
        &mut self.network.path
    }

    /// Returns the number of packets sent so far, which is the number of the next one for [`Path::lose`].
    pub fn transmissions(&self) -> u64 {
        self.transmissions
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Limits the application to `packets` per interval `every` from now on.
    pub fn limit_application(&mut self, packets: Packets, every: Span) {
        self.bursts_from = (self.now, self.next);
        self.network.path.bursts = Some((packets, every));
    }

    /// Sets the round-trip time of packets sent from now on.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.network.path.rtt = rtt;
    }

    /// Sets the bottleneck rate of packets sent from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.network.path.rate = rate;
    }

    /// Sets the rate of a policer for packets sent from now on.
    pub fn set_policer(&mut self, rate: Rate, burst: Packets) {
        self.network.path.policer = Some((rate, burst));
    }

    /// Returns the rows directly before and after each start of fast recovery.
    pub fn reductions(&self) -> Vec<(&Row, &Row)> {
        let enters = |pair: &&[Row]| pair[0].state != CaState::Recovery && pair[1].state == CaState::Recovery;
        self.rows.windows(2).filter(enters).map(|pair| (&pair[0], &pair[1])).collect()
    }

    /// Returns the last row at or before `at`.
    pub fn row_at(&self, at: Time) -> &Row {
        let after = self.rows.partition_point(|row| row.at <= at);
        &self.rows[after.checked_sub(1).expect("something was acknowledged by then")]
    }

    /// Returns the rate of payload delivered from `start` to the last row.
    pub fn goodput(&self, start: Time) -> Rate {
        let (from, to) = (self.row_at(start), &self.rows[self.rows.len() - 1]);
        Rate::of(Bytes((to.delivered - from.delivered).0 * MSS.0), to.at.since(from.at))
    }

    /// Undoes a spurious reduction, as a connection does when D-SACKs report that the losses were spurious.
    pub fn undo(&mut self, prior_cwnd: Packets, prior_ssthresh: Packets) {
        let conn = self.conn();
        self.window.cwnd = self.controller.undo(&conn, prior_cwnd, &self.window);
        self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
        self.enter(CaState::Open);
    }

    fn inflight(&self) -> Packets {
        Packets((self.flight.len() + self.dropped.len()) as u64)
    }

    fn conn(&self) -> Conn {
        Conn {
            now: self.now,
            jiffies: Hz::MILLISECOND_TICK.at(self.now),
            hz: Hz::MILLISECOND_TICK,
            mss: MSS,
            state: self.state,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight(),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            delivered_ce: Packets::ZERO,
            lost: self.lost,
            last_sent_jiffies: Hz::MILLISECOND_TICK.at(self.last_sent_at),
            una_bytes: Bytes(self.una * MSS.0),
            next_bytes: Bytes(self.next * MSS.0),
            bytes_sent: Bytes(self.next * MSS.0),
            is_receiver_limited: false,
            is_cwnd_exhausted: self.is_cwnd_limited,
            is_cwnd_limited: self.is_cwnd_limited
                || (self.window.is_in_slow_start() && self.window.cwnd.0 < 2 * self.most_inflight),
            is_app_limited: self.app_limited_until > Packets::ZERO,
            is_paced: self.controller.paces(),
            next_departure: self.next_departure.max(self.now) + self.network.path.lead,
        }
    }

    /// Returns the time at which the application has the next new packet.
    fn next_data(&self) -> Time {
        let (start, first) = self.bursts_from;
        let burst = self
            .network
            .path
            .bursts
            .map_or(Time::ZERO, |(packets, every)| start + Span((1 + (self.next - first) / packets.0) * every.0));
        match self.network.path.pause {
            Some((from, to)) if self.now.max(burst) >= from => burst.max(to),
            _ => burst,
        }
    }

    fn next_send(&mut self) -> Option<Time> {
        if self.inflight() >= self.window.cwnd {
            self.note_usage(true);
            return None;
        }
        let data = if self.retransmit.is_empty() { self.next_data() } else { self.now };
        if data > self.now {
            self.note_usage(false);
            self.app_limited_until = (self.delivered + self.inflight()).max(Packets(1));
        }
        let departure = if self.controller.paces() { self.next_departure } else { self.now };
        Some(departure.max(data).max(self.now))
    }

    /// Records that the sender has stopped, because of cwnd or for another reason.
    fn note_usage(&mut self, is_cwnd_limited: bool) {
        let inflight = self.inflight().0;
        let is_more = !self.is_cwnd_limited && inflight > self.most_inflight;
        if self.una >= self.usage_point || is_cwnd_limited || is_more {
            self.is_cwnd_limited = is_cwnd_limited;
            self.most_inflight = inflight;
            self.usage_point = self.next;
        }
    }

    fn send(&mut self, at: Time) {
        self.now = at;
        let is_lone = self.inflight() == Packets::ZERO;
        if is_lone {
            let conn = self.conn();
            self.controller.on_transmit_start(&conn, &mut self.window, &mut self.rng);
            self.first_sent_at = at;
            self.delivered_at = at;
        }
        let sequence = self.retransmit.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        match self.network.carry(at, self.rng.next_u64()) {
            None => self.dropped.push_back(Dropped {
                number: self.transmissions,
                sequence,
                inflight_at_send: self.inflight() + Packets(1),
                lost: self.lost,
                is_app_limited: self.app_limited_until > Packets::ZERO,
            }),
            Some(acked_at) => self.flight.push_back(Packet {
                number: self.transmissions,
                sequence,
                sent_at: at,
                first_sent_at: self.first_sent_at,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                is_app_limited: self.app_limited_until > Packets::ZERO,
                is_lone,
                inflight_at_send: self.inflight() + Packets(1),
                lost: self.lost,
                acked_at: if is_lone { acked_at + self.network.path.lone_delay } else { acked_at },
            }),
        }
        self.transmissions += 1;
        self.last_sent_at = at;
        if self.controller.paces() {
            self.next_departure = at.max(self.next_departure) + self.window.pacing_rate.time_to_send(MSS);
        }
    }

    fn receive_ack(&mut self, at: Time) {
        self.now = at;
        let prior_inflight = self.inflight();
        let mut acked = Packets::ZERO;
        let mut newest = None;
        while self.flight.front().is_some_and(|packet| packet.acked_at == at) {
            let packet = self.flight.pop_front().expect("there is a front");
            acked += Packets(1);
            self.arrived.insert(packet.sequence);
            newest = Some(packet);
        }
        while self.arrived.remove(&self.una) {
            self.una += 1;
        }
        self.delivered += acked;
        self.delivered_at = at;
        let newest = newest.expect("an ACK acknowledges something");
        if self.delivered > self.app_limited_until {
            self.app_limited_until = Packets::ZERO;
        }
        let lost = self.detect_losses(newest.number);
        let rtt = at.since(newest.sent_at);
        self.min_rtt = self.min_rtt.map(|min_rtt| min_rtt.min(rtt));
        self.srtt = self.srtt.map(|srtt| Span((srtt.0 * 7 + rtt.0) / 8));
        let conn = self.conn();
        self.controller.on_packets_acked(&conn, acked, Some(rtt), &mut self.window);
        self.update_state(lost);
        let rate = self.rate_sample(&newest);
        let is_delayed = newest.is_lone && acked == Packets(1) && self.network.path.lone_delay > Span::ZERO;
        let ack = Ack {
            acked,
            lost,
            prior_inflight,
            rtt: Some(rtt),
            is_delayed,
            is_marked: false,
            is_probe_answer: false,
            rate: Some(rate),
        };
        let conn = self.conn();
        if self.controller.governs_recovery() || self.state != CaState::Recovery {
            self.controller.on_ack(&conn, &ack, &mut self.window, &mut self.rng);
        }
        if std::mem::take(&mut self.window.is_held_back) {
            self.app_limited_until = (self.delivered + conn.inflight).max(Packets(1));
        }
        if !self.controller.paces() {
            let percent = if self.window.cwnd.0 < self.window.ssthresh.0 / 2 { 200 } else { 120 };
            let rate = Rate::of(Bytes(self.window.cwnd.0 * MSS.0), self.srtt.expect("there was a sample"));
            self.window.pacing_rate = rate.scale(percent, 100);
        }
        self.record(acked, rtt);
    }

    fn detect_losses(&mut self, newest: u64) -> Packets {
        // Packets are dropped in the order in which they are sent.
        let count = self.dropped.partition_point(|packet| packet.number + 3 <= newest);
        self.lose(count)
    }

    /// Declares the first `count` dropped packets lost.
    fn lose(&mut self, count: usize) -> Packets {
        for packet in self.dropped.drain(..count).collect::<Vec<_>>() {
            self.retransmit.insert(packet.sequence);
            self.lost += Packets(1);
            let segment = LostSegment {
                inflight_at_send: packet.inflight_at_send,
                lost: self.lost - packet.lost,
                is_app_limited: packet.is_app_limited,
            };
            let conn = self.conn();
            self.controller.on_lost(&conn, &segment, &mut self.window, &mut self.rng);
        }
        Packets(count as u64)
    }

    fn rate_sample(&mut self, newest: &Packet) -> RateSample {
        let send_elapsed = newest.sent_at.since(newest.first_sent_at);
        let ack_elapsed = self.now.since(newest.delivered_at);
        self.first_sent_at = newest.sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        RateSample {
            prior_delivered: newest.delivered,
            delivered: self.delivered - newest.delivered,
            lost: self.lost - newest.lost,
            delivered_ce: Packets::ZERO,
            inflight_at_send: newest.inflight_at_send,
            interval: Some(interval).filter(|interval| Some(*interval) >= self.min_rtt),
            is_app_limited: newest.is_app_limited,
        }
    }

    fn update_state(&mut self, lost: Packets) {
        if self.state == CaState::Open && lost > Packets::ZERO {
            let conn = self.conn();
            self.window.ssthresh = self.controller.ssthresh(&conn, &self.window);
            self.recovery_point = self.next;
            self.enter(CaState::Recovery);
            if !self.controller.governs_recovery() {
                self.window.cwnd = self.window.ssthresh;
            }
        } else if self.state != CaState::Open && self.una >= self.recovery_point {
            self.enter(CaState::Open);
        }
    }

    fn enter(&mut self, next: CaState) {
        let conn = self.conn();
        self.controller.on_state(&conn, next, &mut self.window, &mut self.rng);
        self.state = next;
    }

    /// Handles the expiry of the retransmission timer. Dropped packets are retransmitted; packets in flight may still
    /// arrive.
    pub fn time_out(&mut self) {
        let conn = self.conn();
        self.window.ssthresh = self.controller.ssthresh(&conn, &self.window);
        self.controller.on_timeout(&conn, &mut self.window);
        self.recovery_point = self.next;
        self.lose(self.dropped.len());
        self.window.cwnd = Packets(1);
        self.enter(CaState::Loss);
    }

    fn record(&mut self, acked: Packets, rtt: Span) {
        let conn = self.conn();
        let mut report = Vec::new();
        self.controller.report(&conn, &mut |name, value| report.push((name, value)));
        self.rows.push(Row {
            at: self.now,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            inflight: conn.inflight,
            acked,
            rtt,
            pacing_rate: self.window.pacing_rate,
            delivered: self.delivered,
            lost: self.lost,
            state: self.state,
            report,
        });
    }
}

/// Returns the instant `text` after the start.
pub fn at(text: &str) -> Time {
    Time::ZERO + text.parse().expect("a time")
}
