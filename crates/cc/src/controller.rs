//! The interface between a connection and its congestion controller.

use crate::jiffies::{Hz, Jiffies};
use rand_core::Rng;
use std::fmt::Debug;
use thalweg_units::{Bytes, Ecn, Packets, Rate, Span, Time};

/// State of a connection's congestion avoidance and loss recovery, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Something was acknowledged out of order; nothing counts as lost yet.
    Disorder,
    /// Congestion was signalled without a loss (ECN); cwnd is being lowered.
    Cwr,
    /// A loss was detected by acknowledgements; lost segments are being retransmitted (fast recovery).
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

impl CaState {
    /// The state's name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            CaState::Open => "open",
            CaState::Disorder => "disorder",
            CaState::Cwr => "cwr",
            CaState::Recovery => "recovery",
            CaState::Loss => "loss",
        }
    }
}

/// How a receiver reports marks (CE) to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnFeedback {
    /// ECE on every ACK from a mark until the sender's CWR (RFC 3168).
    Classic,
    /// ECE on the ACKs of marked segments, and an immediate ACK at each change (RFC 8257, section 3.2).
    Dctcp,
    /// The number of marked segments (RFC 9768).
    Accurate,
}

/// The variables that a controller sets. The connection owns them and lends them to the controller with every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window: how many segments may be in flight. At least 1.
    pub cwnd: Packets,
    /// Slow-start threshold; [`Packets::MAX`] until the first congestion.
    pub ssthresh: Packets,
    /// Rate at which segments may leave. The connection sets it after every ACK (for the size of its bursts) unless the
    /// controller [paces](Controller::paces).
    pub pacing_rate: Rate,
    /// Set by a controller that keeps the window small on purpose: rate samples of the data now in flight then count as
    /// limited by the application. The connection clears it.
    pub is_held_back: bool,
}

impl Window {
    /// Whether cwnd is below ssthresh.
    pub fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// The connection at the moment of an event, after the connection's own bookkeeping for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conn {
    /// The time of the event.
    pub now: Time,
    /// The same on the coarse clock, which need not begin where [`Conn::now`] does.
    pub jiffies: Jiffies,
    /// Tick rate of the coarse clock.
    pub hz: Hz,
    /// Payload of a full-sized segment.
    pub mss: Bytes,
    /// State of loss recovery.
    pub state: CaState,
    /// Smoothed round-trip time (RFC 6298); none before the first sample.
    pub srtt: Option<Span>,
    /// Smallest round-trip time of the connection's recent past (Linux: 5 minutes); none before the first sample.
    pub min_rtt: Option<Span>,
    /// Segments sent, and neither acknowledged, selectively acknowledged nor deemed lost (retransmissions count).
    pub inflight: Packets,
    /// Segments delivered so far, by cumulative or selective acknowledgement.
    pub delivered: Packets,
    /// Time at which the latest of them was acknowledged.
    pub delivered_at: Time,
    /// Segments of these whose acknowledgement reported a mark; with [`EcnFeedback::Accurate`], segments that were
    /// marked.
    pub delivered_ce: Packets,
    /// Segments deemed lost so far.
    pub lost: Packets,
    /// Time at which data was last sent (when the connection was established, if none was), on the coarse clock. In
    /// [`Controller::on_transmit_start`], the last time before the pause.
    pub last_sent_jiffies: Jiffies,
    /// First byte of the stream that is not yet acknowledged.
    pub una_bytes: Bytes,
    /// First byte of the stream that was not yet sent.
    pub next_bytes: Bytes,
    /// Bytes handed to the network so far, retransmissions included.
    pub bytes_sent: Bytes,
    /// Whether cwnd, and not the application or the receiver, limits the sender; in slow start, whether more than half
    /// of cwnd was used.
    pub is_cwnd_limited: bool,
    /// Whether cwnd was exhausted in the latest window, in slow start as elsewhere (Linux: `tp->is_cwnd_limited`).
    pub is_cwnd_exhausted: bool,
    /// Whether the receiver's window is too small for a segment.
    pub is_receiver_limited: bool,
    /// Whether the application has recently not kept the pipe full.
    pub is_app_limited: bool,
    /// Whether segments leave at the pacing rate, requested by the application or the controller.
    pub is_paced: bool,
    /// Earliest departure of the next segment under pacing; `now` or earlier if it may leave at once.
    pub next_departure: Time,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation): what was delivered while the most recently sent
/// of the segments now acknowledged was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// [`Conn::delivered`] when that segment was sent.
    pub prior_delivered: Packets,
    /// Segments delivered since then.
    pub delivered: Packets,
    /// Segments deemed lost since then. This and the next two are counted only for a controller that
    /// [watches losses](Controller::watches_losses), and zero for others.
    pub lost: Packets,
    /// Segments since then whose acknowledgement reported a mark, as in [`Conn::delivered_ce`].
    pub delivered_ce: Packets,
    /// [`Conn::inflight`] when that segment was sent, itself included.
    pub inflight_at_send: Packets,
    /// The longer of the time it took to send them and the time it took to acknowledge them. `None`: the sample is
    /// shorter than the connection's smallest round-trip time, or has no start, and is not usable.
    pub interval: Option<Span>,
    /// Whether the application limited the sender when that segment left.
    pub is_app_limited: bool,
}

impl RateSample {
    /// The rate in payload bits per second, if the sample is usable.
    pub fn rate(&self, mss: Bytes) -> Option<Rate> {
        self.interval.map(|interval| Rate::of(Bytes(self.delivered.0 * mss.0), interval))
    }
}

/// A segment that was just declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// [`Conn::inflight`] when it was sent, itself included.
    pub inflight_at_send: Packets,
    /// Segments deemed lost since it was sent, itself included.
    pub lost: Packets,
    /// Whether the application limited the sender when it left.
    pub is_app_limited: bool,
}

/// An ACK that the controller may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Segments newly delivered by this ACK, cumulatively or selectively.
    pub acked: Packets,
    /// Segments newly deemed lost on this ACK.
    pub lost: Packets,
    /// Segments in flight before this ACK.
    pub prior_inflight: Packets,
    /// Round-trip time of a segment that this ACK newly acknowledges and that was sent once.
    pub rtt: Option<Span>,
    /// Whether the receiver has probably delayed this ACK: it covers a single segment that is not full-sized, and
    /// nothing else was delivered since that segment was sent (Linux: FLAG_ACK_MAYBE_DELAYED).
    pub is_delayed: bool,
    /// Whether it reports a mark.
    pub is_marked: bool,
    /// Whether it answers a loss probe's copy, and it is not known yet whether the probe has repaired a loss.
    pub is_probe_answer: bool,
    /// The delivery-rate sample, if this ACK newly delivers anything.
    pub rate: Option<RateSample>,
}

/// A congestion controller. It keeps only its own state; the crate's documentation describes the division of work.
pub trait Controller: Debug + Send {
    /// The name by which [`build`](crate::build) finds it.
    fn name(&self) -> &'static str;

    /// Whether it sets cwnd in every state of recovery. If not, the connection itself lowers cwnd towards ssthresh, and
    /// calls [`Controller::on_ack`] only where cwnd may be raised.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Whether segments leave at [`Window::pacing_rate`], instead of as soon as cwnd allows.
    fn paces(&self) -> bool {
        false
    }

    /// The ECN feedback without which the controller does not work. Its connections negotiate ECN in any case.
    fn needs_ecn(&self) -> Option<EcnFeedback> {
        None
    }

    /// The ECN field of segments that are ECN-capable: ECT(0), or ECT(1) to be served as L4S (RFC 9331).
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Whether it needs [`Controller::on_lost`]. For such a controller the connection also checks on every ACK, and not
    /// only when the application writes, whether the application limits the sender: the kernel that has BBRv3 does
    /// both.
    fn watches_losses(&self) -> bool {
        false
    }

    /// The handshake is complete. [`Conn::srtt`] may hold its round-trip time.
    fn on_established(&mut self, _conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Segments were acknowledged, in any state: `packets` of them, with the round-trip time of the newest, if known.
    /// Called before [`Controller::on_ack`] for the same ACK.
    fn on_packets_acked(&mut self, _conn: &Conn, _packets: Packets, _rtt: Option<Span>, _window: &mut Window) {}

    /// An ACK on which cwnd may be raised. If the controller governs recovery: every ACK that comes while segments are
    /// out, also one that neither delivers anything nor detects a loss ([`Ack::acked`] and [`Ack::lost`] are 0 then,
    /// and [`Ack::rate`] is `None`), but not one that a later ACK has overtaken.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng);

    /// A loss was detected, [`Conn::state`] is still the state before it: returns the new ssthresh.
    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets;

    /// The receiver has reported a mark and nothing is being recovered: returns the new ssthresh. Called at most once
    /// per round trip. By default a mark counts as a loss, as RFC 3168 requires.
    fn ssthresh_on_mark(&mut self, conn: &Conn, window: &Window) -> Packets {
        self.ssthresh(conn, window)
    }

    /// The retransmission timer has expired, and [`Controller::ssthresh`] was called for that: may change
    /// [`Window::ssthresh`]. cwnd is still the one before the timeout.
    fn on_timeout(&mut self, _conn: &Conn, _window: &mut Window) {}

    /// A segment was deemed lost. Comes for each of an ACK's, before [`Controller::ssthresh`] and
    /// [`Controller::on_ack`].
    fn on_lost(&mut self, _conn: &Conn, _segment: &LostSegment, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// A loss probe's copy has repaired the loss of a segment that nothing else had reported. `is_app_limited`: whether
    /// the application limited the sender when the segment left.
    fn on_probe_repair(&mut self, _conn: &Conn, _is_app_limited: bool, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// The state of recovery is about to become `next`; [`Conn::state`] is still the old one.
    fn on_state(&mut self, _conn: &Conn, _next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// The first segment after a pause is about to leave: nothing is in flight.
    fn on_transmit_start(&mut self, _conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// The reduction of cwnd since the last [`Controller::ssthresh`] was a mistake: returns the cwnd to go on with.
    /// `prior_cwnd` is cwnd before the reduction.
    fn undo(&mut self, _conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        window.cwnd.max(prior_cwnd)
    }

    /// Minimum number of segments of a burst, applied before the connection's own rule (one millisecond's worth at the
    /// pacing rate).
    fn min_burst(&self, _window: &Window) -> Packets {
        Packets(2)
    }

    /// Maximum number of segments of a burst. Takes precedence over [`Controller::min_burst`].
    fn max_burst(&self, _window: &Window) -> Packets {
        Packets::MAX
    }

    /// Returns the size of the send buffer as a multiple of cwnd.
    fn sndbuf_factor(&self) -> u64 {
        2
    }

    /// Hands over the values that only this controller has, by name, for the table `state`. They must not depend on
    /// [`Conn::now`]: the simulator asks only connections that had an event since their last sample.
    fn report(&self, _conn: &Conn, _take: &mut dyn FnMut(&'static str, f64)) {}

    /// Passes its state with Linux's names: the members of `struct bbr`, `struct bictcp` or `struct dctcp`, in their
    /// units, but with unlimited width. They are compared with a kernel's; members without a meaning at the moment are
    /// left out.
    fn kernel_words(&self, _take: &mut dyn FnMut(&'static str, u64)) {}
}
