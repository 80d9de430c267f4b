//! The sending endpoint.
//!
//! An event, such as [`Sender::on_packet`] or [`Sender::on_wake`], changes the state and records what may be sent as
//! [`Work`]; [`Sender::poll_transmit`] then executes it, one packet per call, so that every packet has the timestamp of
//! its actual departure.
//!
//! | topic | file |
//! | --- | --- |
//! | state of each segment | `scoreboard` |
//! | evaluation of an ACK | `ack`, `sack` |
//! | state of recovery, and response to a loss | `recovery` |
//! | undo of a spurious reduction | `undo` |
//! | loss detection | `rack` |
//! | response to a mark | `marks`, whose state is `ecn` |
//! | reduction of cwnd | `prr` |
//! | choice of the next packet | `transmit` |
//! | time and size of bursts | `pacing`, `defer` |
//! | actions without an ACK | `timer`, `probe` |
//! | round-trip time and delivery rate | `rtt`, `rate` |
//! | whether cwnd is used | `usage` |
//! | the send buffer | `sndbuf` |

mod ack;
mod counters;
mod defer;
mod ecn;
mod episode;
mod facts;
mod handshake;
mod info;
mod marks;
mod pacer;
mod pacing;
mod probe;
mod prr;
mod rack;
#[cfg(test)]
mod rack_tests;
mod rate;
mod recovery;
mod rtt;
mod sack;
mod scoreboard;
mod send_buffer;
mod sndbuf;
mod timer;
mod transmit;
mod undo;
mod usage;
mod work;

pub use counters::Counters;
pub use info::Info;

use crate::kernel::KernelGeneration;
use crate::packet::{Timestamp, ToSender};
use ecn::EcnState;
use episode::Episode;
use pacer::Pacer;
use prr::Prr;
use rack::Rack;
use rand_core::Rng;
use rate::{RateSampler, Totals};
use rtt::Rtt;
use scoreboard::{Scoreboard, SendCounts};
use send_buffer::SendBuffer;
use thalweg_cc::{CaState, Conn, Controller, EcnFeedback, Hz, Window};
use thalweg_units::{Bytes, MSS, Packets, Rate, Span, Time};
use work::Work;

/// The coarse clock of the sending host, which starts with the experiment.
const HZ: Hz = Hz::MILLISECOND_TICK;

/// The initial window (RFC 6928).
pub(crate) const INITIAL_CWND: Packets = Packets(10);

/// Margin of a timer, so that it does not expire exactly at the time of the expected event: TCP_TIMEOUT_MIN.
pub(super) const TIMEOUT_MIN: Span = Span::from_millis(2);

/// Settings of a sending host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Payload of a full-sized segment.
    pub mss: Bytes,
    /// Maximum memory of the send buffer in bytes (third value of `net.ipv4.tcp_wmem`).
    pub sndbuf_max: Bytes,
    /// Whether segments leave at the pacing rate even if the controller does not pace.
    pub is_paced: bool,
    /// Generation of its kernel.
    pub kernel: KernelGeneration,
    /// Feedback on marks of an ECN-capable connection; `None`: ECN is not requested.
    pub ecn: Option<EcnFeedback>,
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        let kernel = KernelGeneration::default();
        SenderConfig { mss: MSS, sndbuf_max: Bytes(4 << 20), is_paced: false, kernel, ecn: None }
    }
}

/// The sending endpoint of a connection.
///
/// ```
/// # use thalweg_tcp::{Sender, SenderConfig, ToReceiver};
/// # use thalweg_units::{Bytes, Packets, Span, Time};
/// # use thalweg_cc::{Ack, Conn, Controller, Window};
/// # use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
/// # #[derive(Debug)]
/// # struct Fixed;
/// # impl Controller for Fixed {
/// #     fn name(&self) -> &'static str { "fixed" }
/// #     fn on_ack(&mut self, _: &Conn, _: &Ack, _: &mut Window, _: &mut dyn rand_core::Rng) {}
/// #     fn ssthresh(&mut self, _: &Conn, window: &Window) -> Packets { window.cwnd }
/// # }
/// # let controller = Box::new(Fixed);
/// let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
/// let mut sender = Sender::new(SenderConfig::default(), controller);
/// sender.connect(Time::ZERO);
/// sender.write(Time::ZERO, Bytes(30_000_000));
/// let packet = sender.poll_transmit(Time::ZERO, &mut rng);
/// assert!(matches!(packet, Some(ToReceiver::Syn(_))));
/// assert_eq!(sender.next_wake(), Some(Time::ZERO + Span::from_millis(1_024)), "the SYN is repeated after a second");
/// ```
#[derive(Debug)]
pub struct Sender {
    config: SenderConfig,
    cc: Box<dyn Controller>,
    /// Whether the controller sets cwnd in every state of recovery.
    is_governed: bool,
    is_paced: bool,
    window: Window,
    handshake: Handshake,
    syn_sent_at: Time,
    board: Scoreboard,
    /// The SACK blocks of the latest ACK with blocks that arrived while data was outstanding; (0, 0): none.
    sack_blocks: [(u64, u64); 3],
    sndbuf: SendBuffer,
    /// End of the receive window, as an offset in the stream.
    window_end: Bytes,
    /// The largest window that the receiver has offered.
    window_max: Bytes,
    /// The receiver's latest timestamp.
    peer_tsval: Timestamp,
    state: CaState,
    episode: Episode,
    ecn: EcnState,
    prr: Prr,
    rack: Rack,
    rtt: Rtt,
    rate: RateSampler,
    pacer: Pacer,
    usage: Usage,
    probe: Option<Probe>,
    /// Whether the segment that the latest loss probe repeated had been sent application-limited.
    is_probed_app_limited: bool,
    timer: Option<(Time, Timer)>,
    work: Work,
    counters: Counters,
    /// Payload bytes sent, including retransmissions.
    bytes_sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    Closed,
    SynSent,
    Established,
}

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Retransmission timeout, of the SYN or of the first outstanding segment.
    Retransmission,
    /// Tail loss probe: elicits an ACK, because losses at the end of a burst are not reported.
    LossProbe,
    /// End of RACK's reordering window: segments that are then overdue count as lost.
    Reordering,
}

/// An outstanding probe.
#[derive(Debug)]
struct Probe {
    /// The number after the last segment sent, the probe included.
    end: u64,
    /// Whether it is a copy of a segment that had been sent.
    is_copy: bool,
}

#[derive(Debug, Default)]
struct Usage {
    /// Whether cwnd limited the sender in the current window.
    is_cwnd_limited: bool,
    /// Maximum number of outstanding segments in the current window; if cwnd limits the sender, the latest number.
    max_packets_out: u64,
    /// The current window ends when the left edge reaches this segment.
    window_end: u64,
    /// Maximum number of outstanding segments since cwnd was last the limit, or since an unused cwnd was last handled.
    cwnd_used: u64,
    /// Start of the period after which an unused cwnd is reduced (Linux: `snd_cwnd_stamp`).
    cwnd_stamp: Time,
    /// Time of the last data transmission; before the first one, the time at which the SYN-ACK arrived.
    last_sent_at: Time,
}

impl Sender {
    /// Creates a connection that is not yet open.
    ///
    /// # Panics
    /// If the MSS is zero or above 65535.
    pub fn new(config: SenderConfig, cc: Box<dyn Controller>) -> Sender {
        assert!((1..=65_535).contains(&config.mss.0), "a segment holds 1 to 65535 bytes, not {}", config.mss);
        Sender {
            board: Scoreboard::new(cc.watches_losses()),
            is_governed: cc.governs_recovery(),
            is_paced: cc.paces() || config.is_paced,
            config,
            cc,
            window: Window {
                cwnd: INITIAL_CWND,
                ssthresh: Packets::MAX,
                pacing_rate: Rate(u64::MAX),
                is_held_back: false,
            },
            handshake: Handshake::Closed,
            syn_sent_at: Time::ZERO,
            sack_blocks: [(0, 0); 3],
            sndbuf: SendBuffer::default(),
            window_end: Bytes::ZERO,
            window_max: Bytes::ZERO,
            peer_tsval: Timestamp::default(),
            state: CaState::Open,
            episode: Episode::default(),
            ecn: EcnState::default(),
            prr: Prr::default(),
            rack: Rack::new(),
            rtt: Rtt::new(),
            rate: RateSampler::default(),
            pacer: Pacer::default(),
            usage: Usage::default(),
            probe: None,
            is_probed_app_limited: false,
            timer: None,
            work: Work::default(),
            counters: Counters::default(),
            bytes_sent: 0,
        }
    }

    /// Appends `size` bytes of the application to the stream; [`Bytes::MAX`] means unlimited. Data written before the
    /// handshake is complete waits.
    pub fn write(&mut self, _now: Time, size: Bytes) {
        let is_idle = self.sndbuf.queued == self.sndbuf.written;
        self.sndbuf.written = self.sndbuf.written.saturating_add(size.0);
        // Otherwise, once connected, the application is already writing or waits for an ACK to free buffer space.
        if self.handshake == Handshake::Established && is_idle {
            self.sndbuf.begin_writing();
        }
    }

    /// Ends the stream: data not yet sent is discarded.
    pub fn stop(&mut self, _now: Time) {
        let Bytes(next) = self.board.next_bytes();
        self.sndbuf.cut(next);
        self.pacer.left = 0;
    }

    /// Handles a packet. Returns the round-trip time of the handshake, or of the oldest newly acknowledged segment that
    /// can be measured without timestamps; `None` without such a sample. Poll afterwards.
    pub fn on_packet(&mut self, now: Time, packet: &ToSender, rng: &mut dyn Rng) -> Option<Span> {
        match packet {
            ToSender::SynAck(packet) => self.on_syn_ack(now, packet, rng),
            ToSender::Ack(packet) if self.handshake == Handshake::Established => self.on_ack(now, packet, rng),
            ToSender::Ack(_) => None,
        }
    }

    /// Returns the number of bytes of the stream that were acknowledged cumulatively.
    pub fn acked(&self) -> Bytes {
        self.board.una_bytes()
    }

    /// Returns the length of the stream, as written so far or as cut by [`Sender::stop`].
    pub fn written(&self) -> Bytes {
        Bytes(self.sndbuf.written)
    }

    /// Verifies the incremental counts and other invariants, for tests, by scanning every outstanding segment.
    ///
    /// # Panics
    /// If an invariant is violated.
    #[doc(hidden)]
    pub fn verify(&self) {
        self.board.verify();
        assert!(self.window.cwnd >= Packets(1), "cwnd is at least one segment");
        let Bytes(next) = self.board.next_bytes();
        assert!(next <= self.sndbuf.queued && self.sndbuf.queued <= self.sndbuf.written, "sent before it was written");
        let first_sends = self.counters.segments - self.counters.retransmits;
        assert_eq!(first_sends, self.board.next(), "segments sent = first transmissions + retransmissions");
        let can_act = self.timer.is_some() || self.pacer.is_waiting || self.board.packets_out() == 0;
        assert!(can_act, "segments are in flight and no timer is set");
    }

    /// Returns the connection as its controller sees it.
    fn conn(&self, now: Time) -> Conn {
        Conn {
            now,
            jiffies: HZ.at(now),
            hz: HZ,
            mss: self.config.mss,
            state: self.state,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            inflight: self.board.in_flight(),
            delivered: Packets(self.rate.delivered),
            delivered_ce: Packets(self.counters.marked),
            delivered_at: self.rate.delivered_at,
            lost: Packets(self.board.lost_total()),
            una_bytes: self.board.una_bytes(),
            next_bytes: self.board.next_bytes(),
            bytes_sent: Bytes(self.bytes_sent),
            is_receiver_limited: self.board.next_bytes() + self.config.mss > self.window_end,
            is_cwnd_limited: self.is_cwnd_limited(),
            is_cwnd_exhausted: self.usage.is_cwnd_limited,
            is_app_limited: self.rate.is_app_limited(),
            last_sent_jiffies: HZ.at(self.usage.last_sent_at),
            is_paced: self.is_paced,
            next_departure: self.pacer.departure,
        }
    }

    fn totals(&self) -> Totals {
        Totals { lost: self.board.lost_total(), marked: self.counters.marked }
    }

    /// Returns the counts that are stored with a segment that leaves now.
    fn send_counts(&self) -> SendCounts {
        if !self.board.is_watched {
            return SendCounts::default();
        }
        let inflight = u32::try_from(self.board.in_flight().0 + 1).unwrap_or(u32::MAX);
        SendCounts { inflight, lost: self.board.lost_total() as u32, delivered_ce: self.counters.marked as u32 }
    }

    fn report_losses(&mut self, now: Time, rng: &mut dyn Rng) {
        if self.board.newly_lost.is_empty() {
            return;
        }
        let mut lost = std::mem::take(&mut self.board.newly_lost);
        let conn = self.conn(now);
        for segment in lost.drain(..) {
            self.cc.on_lost(&conn, &segment, &mut self.window, rng);
        }
        self.board.newly_lost = lost;
        self.obey_hold();
    }

    /// Raises cwnd to its minimum after a call of the controller, and applies the controller's request to be held back.
    fn obey_hold(&mut self) {
        self.window.cwnd = self.window.cwnd.max(Packets(1));
        if std::mem::take(&mut self.window.is_held_back) {
            self.rate.set_app_limited(self.board.in_flight());
        }
    }

    /// Changes the state of recovery; the controller is notified first.
    fn set_state(&mut self, now: Time, rng: &mut dyn Rng, next: CaState) {
        let conn = self.conn(now);
        self.cc.on_state(&conn, next, &mut self.window, rng);
        self.obey_hold();
        self.state = next;
    }
}
