//! The interface between a connection and its congestion controller.

use crate::jiffies::{Hz, Jiffies};
use rand_core::Rng;
use std::fmt::Debug;
use thalweg_units::{Bytes, Ecn, Packets, Rate, Span, Time};

/// State of a connection's congestion avoidance and loss recovery, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// No sign of congestion or loss.
    #[default]
    Open,
    /// Segments were acknowledged out of order, or retransmissions are outstanding.
    Disorder,
    /// cwnd is being reduced without retransmissions: after an ECN mark, or after a loss that a loss probe (TLP)
    /// repaired.
    Cwr,
    /// A loss was detected, and lost segments are being retransmitted (fast recovery).
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

impl CaState {
    /// Returns the state's name in tables.
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

/// The variables that a controller sets. The connection owns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window: maximum number of segments in flight. At least 1.
    pub cwnd: Packets,
    /// Slow-start threshold; initially [`Packets::MAX`].
    pub ssthresh: Packets,
    /// Pacing rate, which also sizes bursts. The connection sets it unless the controller [paces](Controller::paces).
    pub pacing_rate: Rate,
    /// Set by a controller that keeps the window small intentionally. The connection clears it, and treats the segments
    /// sent until the data now in flight is delivered as application-limited.
    pub is_held_back: bool,
}

impl Window {
    /// Whether cwnd is below ssthresh.
    pub fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// State of the connection at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conn {
    /// The time of the event.
    pub now: Time,
    /// The time of the event on the coarse clock, whose origin may differ from that of `now`.
    pub jiffies: Jiffies,
    /// Tick rate of the coarse clock.
    pub hz: Hz,
    /// Payload of a full-sized segment.
    pub mss: Bytes,
    /// State of loss recovery.
    pub state: CaState,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Span>,
    /// Smallest round-trip time within the window of the minimum filter (Linux: 5 minutes by default); `None` before
    /// the first sample.
    pub min_rtt: Option<Span>,
    /// Segments sent that are neither acknowledged, selectively acknowledged nor deemed lost; retransmissions count,
    /// except that of a loss probe.
    pub inflight: Packets,
    /// Segments delivered so far. The SYN and duplicates reported by D-SACKs count, as in Linux.
    pub delivered: Packets,
    /// Time at which the latest delivered segment was acknowledged, or at which data was last sent with nothing
    /// outstanding, if that is later.
    pub delivered_at: Time,
    /// Delivered segments whose acknowledgement reported a mark; with [`EcnFeedback::Accurate`], segments that were
    /// marked.
    pub delivered_ce: Packets,
    /// Segments deemed lost so far.
    pub lost: Packets,
    /// Time at which data was last sent, on the coarse clock; before any data, the time at which the connection was
    /// established. In [`Controller::on_transmit_start`], the transmission that is about to start does not count.
    pub last_sent_jiffies: Jiffies,
    /// Stream offset of the first unacknowledged byte.
    pub una_bytes: Bytes,
    /// Stream offset of the first unsent byte.
    pub next_bytes: Bytes,
    /// Bytes sent so far, including retransmissions.
    pub bytes_sent: Bytes,
    /// Whether cwnd, rather than the application or the receiver, limits the sender. In slow start: also if more than
    /// half of cwnd was used.
    pub is_cwnd_limited: bool,
    /// Whether cwnd was fully used in the latest window, in slow start too (Linux: `tp->is_cwnd_limited`).
    pub is_cwnd_exhausted: bool,
    /// Whether the receiver's window has no space for another full-sized segment.
    pub is_receiver_limited: bool,
    /// Whether segments sent now count as application-limited.
    pub is_app_limited: bool,
    /// Whether segments are paced.
    pub is_paced: bool,
    /// Earliest departure of the next segment under pacing; `now` or earlier if it may leave immediately.
    pub next_departure: Time,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation): the data delivered while the most recently sent
/// segment of those now acknowledged was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// [`Conn::delivered`] when that segment was sent.
    pub prior_delivered: Packets,
    /// Segments delivered since that segment was sent.
    pub delivered: Packets,
    /// Segments deemed lost since that segment was sent. This and the next two fields are valid only for a controller
    /// that [watches losses](Controller::watches_losses).
    pub lost: Packets,
    /// Segments delivered since that segment was sent whose acknowledgement reported a mark, as in
    /// [`Conn::delivered_ce`].
    pub delivered_ce: Packets,
    /// [`Conn::inflight`] when that segment was sent, including its burst.
    pub inflight_at_send: Packets,
    /// The longer of the send interval and the ACK interval; `None` if the sample is not usable.
    pub interval: Option<Span>,
    /// Whether the sender was application-limited when that segment was sent.
    pub is_app_limited: bool,
}

impl RateSample {
    /// Returns the rate in payload bits per second, if the sample is usable.
    pub fn rate(&self, mss: Bytes) -> Option<Rate> {
        self.interval.map(|interval| Rate::of(Bytes(self.delivered.0 * mss.0), interval))
    }
}

/// A segment that was just declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// [`Conn::inflight`] when the segment was sent, including the segment.
    pub inflight_at_send: Packets,
    /// Segments deemed lost since the segment was sent, including the segment.
    pub lost: Packets,
    /// Whether the sender was application-limited when the segment was sent.
    pub is_app_limited: bool,
}

/// An ACK that the controller may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Segments newly delivered by this ACK, cumulatively or selectively; duplicates reported by D-SACKs count.
    pub acked: Packets,
    /// Segments newly deemed lost on this ACK.
    pub lost: Packets,
    /// Segments in flight before this ACK.
    pub prior_inflight: Packets,
    /// Round-trip time of the newest newly delivered segment; where its send time cannot be used, from the echoed
    /// timestamp, in whole milliseconds. `None` if neither is possible.
    pub rtt: Option<Span>,
    /// Whether the receiver has probably delayed this ACK (Linux: FLAG_ACK_MAYBE_DELAYED).
    pub is_delayed: bool,
    /// Whether the ACK reports a mark.
    pub is_marked: bool,
    /// Whether the ACK answers the retransmission of a loss probe, and it is not yet known whether the probe has
    /// repaired a loss.
    pub is_probe_answer: bool,
    /// The delivery-rate sample; `None` if this ACK delivers no segment for the first time.
    pub rate: Option<RateSample>,
}

/// A congestion controller. The crate documentation describes the division of work.
pub trait Controller: Debug + Send {
    /// Returns the name by which [`build`](crate::build) finds the controller.
    fn name(&self) -> &'static str;

    /// Whether the controller sets cwnd in every state of recovery. If not, the connection itself lowers cwnd towards
    /// ssthresh, and calls [`Controller::on_ack`] only where cwnd may be raised.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Whether the controller sets [`Window::pacing_rate`] and requires that segments are paced at it.
    fn paces(&self) -> bool {
        false
    }

    /// Returns the ECN feedback that the controller requires, if any. Its connections then request ECN.
    fn needs_ecn(&self) -> Option<EcnFeedback> {
        None
    }

    /// Returns the ECN field of ECN-capable segments: ECT(0), or ECT(1) for L4S service (RFC 9331).
    fn ecn_codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Whether the controller needs [`Controller::on_lost`]. For such a controller the connection also checks on ACKs
    /// whether the sender is application-limited, as the kernel with BBRv3 does.
    fn watches_losses(&self) -> bool {
        false
    }

    /// Called when the handshake is complete. [`Conn::srtt`] may hold its round-trip time.
    fn on_established(&mut self, _conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Called when `packets` segments were acknowledged cumulatively, in any state; 0 for an ACK that acknowledges only
    /// selectively. `rtt` is [`Ack::rtt`]. Precedes [`Controller::on_ack`] for the same ACK.
    fn on_packets_acked(&mut self, _conn: &Conn, _packets: Packets, _rtt: Option<Span>, _window: &mut Window) {}

    /// Called for an ACK on which cwnd may be raised: it acknowledges data cumulatively, or selectively on a path with
    /// strong reordering, and the state is neither Cwr nor Recovery. If the controller governs recovery, also called
    /// for other ACKs, including those that deliver nothing.
    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng);

    /// Returns the new ssthresh when a loss is detected. [`Conn::state`] is still the state before the loss.
    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets;

    /// Returns the new ssthresh when the receiver reports a mark outside of recovery. By default a mark counts as a
    /// loss, as RFC 3168 requires.
    fn ssthresh_on_mark(&mut self, conn: &Conn, window: &Window) -> Packets {
        self.ssthresh(conn, window)
    }

    /// Called after [`Controller::ssthresh`] when the retransmission timer has expired; neither is called if the
    /// timeout continues an earlier reduction. May change [`Window::ssthresh`]; cwnd still has the value before the
    /// timeout.
    fn on_timeout(&mut self, _conn: &Conn, _window: &mut Window) {}

    /// Called for each segment that is deemed lost, before [`Controller::ssthresh`] and [`Controller::on_ack`]; only if
    /// [`Controller::watches_losses`] is true.
    fn on_lost(&mut self, _conn: &Conn, _segment: &LostSegment, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Called when the retransmission of a loss probe has repaired a loss that nothing else had reported.
    /// `is_app_limited`: whether the sender was application-limited when the lost segment was sent.
    fn on_probe_repair(&mut self, _conn: &Conn, _is_app_limited: bool, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Called before the state of recovery becomes `next`; [`Conn::state`] is still the previous state.
    fn on_state(&mut self, _conn: &Conn, _next: CaState, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Called before a segment is sent with nothing in flight ([`Conn::inflight`] is 0).
    fn on_transmit_start(&mut self, _conn: &Conn, _window: &mut Window, _rng: &mut dyn Rng) {}

    /// Returns the new cwnd when the reduction since the last [`Controller::ssthresh`] was spurious. `prior_cwnd` is
    /// cwnd before the reduction.
    fn undo(&mut self, _conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        window.cwnd.max(prior_cwnd)
    }

    /// Returns the minimum number of segments in a burst, which applies where the connection's own rule yields fewer.
    fn min_burst(&self, _window: &Window) -> Packets {
        Packets(2)
    }

    /// Returns the maximum number of segments in a burst. Takes precedence over [`Controller::min_burst`].
    fn max_burst(&self, _window: &Window) -> Packets {
        Packets::MAX
    }

    /// Returns the size of the send buffer as a multiple of cwnd.
    fn sndbuf_factor(&self) -> u64 {
        2
    }

    /// Passes the controller's own values to `take`, by name, for the table `state`. They must not depend on
    /// [`Conn::now`]: the simulator reads only connections that had an event since their last sample.
    fn report(&self, _conn: &Conn, _take: &mut dyn FnMut(&'static str, f64)) {}

    /// Passes the controller's state to `take` under the names of Linux's members (`struct bbr`, `struct bictcp` or
    /// `struct dctcp`, and `snd_cwnd_cnt`), in their units, but not truncated to their width. Members that currently
    /// have no meaning are omitted.
    fn kernel_words(&self, _take: &mut dyn FnMut(&'static str, u64)) {}
}
