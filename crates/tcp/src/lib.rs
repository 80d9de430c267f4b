//! Model of the two endpoints of a TCP connection: no clock, no I/O, no randomness of its own.
//!
//! A [`Sender`] opens the connection and sends a stream; a [`Receiver`] acknowledges it. They model Linux's default
//! behaviour as far as it is visible on the wire. A [`thalweg_cc::Controller`] sets cwnd and may set the pacing rate.
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
//! The stream is split into segments once: every segment has a number and keeps its length. The congestion window and
//! data in flight are counted in segments, as in Linux.
//!
//! The reference is Linux 6.1.192. The module `kernel` lists the modelled differences of later generations.
//!
//! # Deviations from Linux
//!
//! - Data flows in one direction; connections are not closed.
//! - Time is in nanoseconds; Linux rounds round-trip times to microseconds. Its tick is assumed to be 1 ms (HZ = 1000).
//!   Departures under pacing and compressed ACKs have no slack.
//! - `TCP_NODELAY` is assumed: a short segment never waits for an ACK (no Nagle algorithm).
//! - No TCP Fast Open, no MTU probing, no reneging, no connection without SACK or timestamps; a connection never gives
//!   up.
//! - A connection has no information from earlier ones to the same host (no metrics cache).
//! - A packet that is polled has left the host: no queue exists below TCP, hence no TCP small queues. The driver
//!   implements receive offload ([`Receiver::on_merged`]).
//! - Lost segments are retransmitted one by one.
//! - Memory in the two buffers is approximated (see the modules `sndbuf` and `window`).
//! - The receiving application reads immediately.

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
