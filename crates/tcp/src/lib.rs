//! Model of the two endpoints of a TCP connection: no clock, no I/O, no randomness of its own.
//!
//! A [`Sender`] opens the connection and sends a stream; a [`Receiver`] acknowledges it. They behave as Linux does by
//! default, as far as that is visible on the wire: handshake, ECN, SACK and D-SACK, RACK-TLP, F-RTO, proportional rate
//! reduction, undo, delayed and compressed ACKs, delivery-rate samples, pacing in bursts, buffers that grow. A
//! [`thalweg_cc::Controller`] decides the rate.
//!
//! The driver calls an endpoint when a packet arrives or at the time that the endpoint requested
//! ([`Sender::next_wake`]), and then takes packets from it until it returns `None`:
//!
//! ```text
//!    write ─┐                     ┌── poll_transmit ──► packets to the network
//!           ├──► endpoint ────────┤
//! packet ───┤                     └── next_wake ──────► the time of the next on_wake
//!   wake ───┘
//! ```
//!
//! The stream is cut into segments once: every segment has a number and keeps its length. Windows and everything that
//! is in flight are counted in segments, as in Linux.
//!
//! The reference is Linux 6.1.192, the long-term kernel of autumn 2025 with what was backported until then.
//! [`KernelGeneration`] says in what later generations differ that is modelled. Later kernels also repeat the first
//! four SYNs at intervals of a second.
//!
//! # What differs from Linux
//!
//! - Data flows in one direction; connections are not closed, since the driver knows when it has seen enough.
//! - Time is in nanoseconds; Linux rounds round-trip times to microseconds. Its tick is taken to be 1 ms (HZ = 1000).
//!   Departures under pacing and compressed ACKs have no slack.
//! - `TCP_NODELAY` is assumed: a short segment never waits for an ACK (no Nagle algorithm).
//! - No TCP Fast Open, no MTU probing, no reneging, no connection without SACK or
//!   timestamps; a connection is never given up.
//! - A connection knows nothing of earlier ones to the same host (no metrics cache).
//! - A packet that is polled has left the host: there is no queue below TCP, hence no TCP small queues. Receive offload
//!   is the driver's business ([`Receiver::on_merged`]).
//! - Lost segments are sent again one by one, never merged or in bursts.
//! - Memory in the two buffers is approximated (the modules `sndbuf` and `window` say how).
//! - The receiving application reads at once.

mod kernel;
mod packet;
mod ranges;
mod receiver;
mod sender;
mod tick;

pub use kernel::KernelGeneration;
pub use packet::{
    AckPacket, Data, Established, SackBlock, SackList, Seq, Syn, SynAck, Timestamp, ToReceiver, ToSender,
};
pub use receiver::{Receiver, ReceiverConfig};
pub use sender::{Counters, Info, Sender, SenderConfig};
