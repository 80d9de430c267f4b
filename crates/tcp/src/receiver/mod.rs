//! The receiving endpoint: it reassembles the stream and acknowledges it. The application reads immediately.
//!
//! | topic | file |
//! | --- | --- |
//! | received segments, and the SACK blocks that report them | `reassembly` |
//! | time at which an ACK is sent | `delack`, `ack_policy` |
//! | feedback of marks | `marks`, whose state is `ecn` |
//! | receive window | `window` |

mod ack_policy;
mod delack;
mod ecn;
mod marks;
mod reassembly;
mod window;

use crate::kernel::KernelGeneration;
use crate::packet::{AckPacket, Data, Seq, Syn, SynAck, Timestamp, ToReceiver, ToSender};
use crate::tick::expiry;
use ack_policy::{AckPolicy, QUICK_MAX};
use ecn::EcnEcho;
use reassembly::{Arrival, Reassembly};
use std::collections::VecDeque;
use thalweg_cc::EcnFeedback;
use thalweg_units::{Bytes, MSS, Span, Time};
use window::ReceiveWindow;

/// Maximum age of a segment's timestamp relative to `ts_recent`, in ms: TCP_PAWS_WINDOW.
const PAWS_WINDOW: u32 = 1;
/// Retransmission timeout before the first RTT sample, also for the SYN-ACK.
const RTO_INITIAL: Span = Span::from_secs(1);
/// Lower bound of the timeout's variation term.
const RTO_MIN: Span = Span::from_millis(200);
const RTO_MAX: Span = Span::from_secs(120);

/// Settings of a receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Payload of a full-sized segment.
    pub mss: Bytes,
    /// Maximum memory of the receive buffer in bytes (third value of `net.ipv4.tcp_rmem`). Only a part of it is usable
    /// as window.
    pub rcvbuf_max: Bytes,
    /// Kernel generation of the host.
    pub kernel: KernelGeneration,
    /// The feedback on marks if the sender requests ECN; `None` to refuse ECN.
    pub ecn: Option<EcnFeedback>,
}

impl Default for ReceiverConfig {
    fn default() -> ReceiverConfig {
        ReceiverConfig { mss: MSS, rcvbuf_max: Bytes(6 << 20), kernel: KernelGeneration::default(), ecn: None }
    }
}

/// The receiving endpoint of a connection.
#[derive(Debug)]
pub struct Receiver {
    state: State,
    stream: Reassembly,
    /// The timestamp that ACKs echo: TS.Recent of RFC 7323, section 4.3.
    ts_recent: Timestamp,
    /// The left edge in the last ACK, except an ACK that only precedes a change of DCTCP's CE state.
    acked: u64,
    /// The same left edge, in bytes.
    acked_bytes: u64,
    acks: AckPolicy,
    ecn_config: Option<EcnFeedback>,
    ecn: EcnEcho,
    window: ReceiveWindow,
    /// Round-trip time of the handshake, since the receiver sends no data that would yield another sample; `None`
    /// before the handshake is complete, or if the SYN-ACK timed out.
    srtt: Option<Span>,
    outbox: VecDeque<ToSender>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    /// The SYN-ACK was last sent at `sent_at`, and is repeated at `due`; it has timed out `attempt - 1` times.
    SynReceived {
        sent_at: Time,
        due: Time,
        attempt: u32,
    },
    Established,
}

impl Receiver {
    /// Creates an endpoint that waits for a connection.
    ///
    /// # Panics
    /// If the MSS is zero or above 65535.
    pub fn new(config: ReceiverConfig) -> Receiver {
        assert!((1..=65_535).contains(&config.mss.0), "a segment holds 1 to 65535 bytes, not {}", config.mss);
        Receiver {
            state: State::Listening,
            stream: Reassembly::default(),
            ts_recent: Timestamp::default(),
            acked: 0,
            acked_bytes: 0,
            acks: AckPolicy::default(),
            ecn_config: config.ecn,
            ecn: EcnEcho::default(),
            window: ReceiveWindow::new(config.mss, config.rcvbuf_max, config.kernel),
            srtt: None,
            outbox: VecDeque::new(),
        }
    }

    /// Handles a packet that has arrived. Call [`Receiver::poll_transmit`] afterwards.
    pub fn on_packet(&mut self, now: Time, packet: &ToReceiver) {
        match packet {
            ToReceiver::Syn(syn) => self.on_syn(now, *syn),
            ToReceiver::Established(_) => self.establish(now),
            ToReceiver::Data(data) => {
                // The packet also acknowledges the SYN-ACK.
                self.establish(now);
                if self.state == State::Established {
                    self.on_data(now, data);
                }
            }
        }
    }

    /// Handles segments that receive offload has merged, in order: after the last one, decides whether to acknowledge
    /// them. Call [`Receiver::poll_transmit`] afterwards.
    pub fn on_merged(&mut self, now: Time, segments: &[Data]) {
        let Some((last, others)) = segments.split_last() else { return };
        self.acks.is_merged = true;
        for data in others {
            self.on_packet(now, &ToReceiver::Data(*data));
        }
        self.acks.is_merged = false;
        self.on_packet(now, &ToReceiver::Data(*last));
    }

    /// Returns the next packet to send at `now`. Call it until it returns `None`.
    pub fn poll_transmit(&mut self, _now: Time) -> Option<ToSender> {
        self.outbox.pop_front()
    }

    /// Returns the time at which the endpoint needs to be woken.
    pub fn next_wake(&self) -> Option<Time> {
        match self.state {
            State::Listening => None,
            State::SynReceived { due, .. } => Some(due),
            State::Established => self.acks.next_wake(),
        }
    }

    /// Handles the timers at the time that [`Receiver::next_wake`] returned. Call [`Receiver::poll_transmit`]
    /// afterwards.
    pub fn on_wake(&mut self, now: Time) {
        match self.state {
            State::SynReceived { due, attempt, .. } if due <= now => self.send_syn_ack(now, attempt + 1),
            State::Established => self.on_ack_timer(now),
            _ => {}
        }
    }

    /// Returns the number of bytes that were delivered to the application in order.
    pub fn delivered(&self) -> Bytes {
        Bytes(self.stream.next_bytes())
    }

    fn on_syn(&mut self, now: Time, syn: Syn) {
        match self.state {
            State::Listening => {
                self.ts_recent = syn.tsval;
                self.ecn.feedback = self.ecn_config.filter(|_| syn.is_ecn);
                self.send_syn_ack(now, 1);
            }
            // Linux answers a repeated SYN with the first one's timestamp.
            State::SynReceived { attempt, .. } => self.send_syn_ack(now, attempt),
            State::Established => {}
        }
    }

    fn send_syn_ack(&mut self, now: Time, attempt: u32) {
        let wait = Span(RTO_INITIAL.0 << (attempt - 1).min(7)).min(RTO_MAX);
        self.state = State::SynReceived { sent_at: now, due: expiry(now, wait), attempt };
        let window = self.window.initial();
        self.outbox.push_back(ToSender::SynAck(SynAck {
            window: Bytes(window),
            is_ecn: self.ecn.feedback.is_some(),
            tsval: Timestamp::at(now),
            tsecr: self.ts_recent,
        }));
    }

    fn establish(&mut self, now: Time) {
        let State::SynReceived { sent_at, attempt, .. } = self.state else {
            return;
        };
        self.state = State::Established;
        // If the SYN-ACK was repeated after a timeout, it is unknown which copy was answered.
        self.srtt = (attempt == 1).then(|| now.since(sent_at));
        self.window.establish(now);
    }

    /// Returns the receiver's own retransmission timeout, which limits some of its delays.
    fn rto(&self) -> Span {
        self.srtt.map_or(RTO_INITIAL, |srtt| (srtt + Span(srtt.0 * 2).max(RTO_MIN)).min(RTO_MAX))
    }

    fn on_data(&mut self, now: Time, data: &Data) {
        if data.tsval.0.saturating_add(PAWS_WINDOW) < self.ts_recent.0 {
            // Older than the data received before it (PAWS): discarded, but acknowledged.
            if data.seq.0 < self.stream.next() {
                self.stream.report_duplicate(data.seq);
                self.acks.enter_quick(self.window.advertised(), QUICK_MAX);
            }
            self.send_ack(now);
            return;
        }
        if data.is_cwr {
            self.on_cwr();
        }
        if data.seq.0 <= self.acked && data.tsval >= self.ts_recent {
            self.ts_recent = data.tsval;
        }
        self.stream.forget_duplicate();
        self.window.measure_rtt(now, data, self.acks.full_size());
        let is_beyond_gap = data.seq.0 > self.stream.next();
        if is_beyond_gap {
            self.on_ecn_field(now, data);
            self.acks.schedule();
            if self.stream.would_open_block(data.seq) {
                // As in Linux, this ACK also counts as the answer to the arriving segment.
                self.flush_compressed(now);
            }
        }
        match self.stream.on_data(data) {
            Arrival::Duplicate => {
                self.acks.schedule();
                self.acks.enter_quick(self.window.advertised(), QUICK_MAX);
                self.send_ack(now);
            }
            Arrival::OutOfOrder { is_new } => {
                let held = self.stream.held().without(data.len);
                if is_new && self.window.grow(data.len, held) {
                    self.acks.force_one_quick();
                }
                self.window.on_gap(self.stream.span_bytes());
                self.decide_ack(now);
            }
            Arrival::InOrder { is_gap_filled } => {
                let rto = self.rto();
                let full_size = self.acks.full_size();
                self.acks.on_data(now, data, self.window.advertised(), rto);
                if data.len > full_size {
                    self.window.measure_ratio(data.len);
                }
                self.window.measure_rtt_by_window(now, self.stream.next_bytes());
                self.on_ecn_field(now, data);
                // At this point the segment is still in the buffer.
                let held = self.stream.held().with(data.len);
                if data.len >= 128 && self.window.grow(data.len, held) {
                    self.acks.force_one_quick();
                }
                if is_gap_filled {
                    self.acks.force_now();
                }
                self.decide_ack(now);
                let arrived = data.offset.0 + u64::from(data.len);
                self.window.on_read(now, arrived, self.stream.next_bytes(), self.stream.span_bytes());
                self.decide_ack_after_read(now);
            }
        }
    }

    fn send_ack(&mut self, now: Time) {
        let window = self.window.select(self.stream.next_bytes(), self.stream.held());
        if window.is_short {
            self.acks.stop_quick();
        }
        self.acked = self.stream.next();
        self.acked_bytes = self.stream.next_bytes();
        self.acks.on_sent();
        self.outbox.push_back(ToSender::Ack(AckPacket {
            next: Seq(self.acked),
            window: Bytes(window.size),
            is_ece: self.ecn.is_ece,
            ce_segments: self.ecn.ce_segments,
            tsval: Timestamp::at(now),
            tsecr: self.ts_recent,
            sack: self.stream.take_blocks(),
        }));
    }
}
