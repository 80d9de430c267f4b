//! A connection: its two endpoints, and its consecutive transfers.

use crate::calendar::Alarm;
use std::collections::VecDeque;
use thalweg_tcp::{Counters, Receiver, Sender};
use thalweg_trace::{Changes, Histogram};
use thalweg_traffic::{Item, Message, Stream};
use thalweg_units::{Bytes, Span, Time};

#[derive(Debug)]
pub(crate) struct Connection {
    /// Index of the series that opened the connection.
    pub(crate) series: usize,
    /// Number of the connection within the series.
    pub(crate) number: u64,
    /// Index of the sending host.
    pub(crate) host: usize,
    /// Index of the host that receives its data.
    pub(crate) receiving_host: usize,
    /// Extra delay of its packets on the forward link.
    pub(crate) forward_extra: Span,
    /// Extra delay of its packets on the reverse link.
    pub(crate) reverse_extra: Span,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) sender_alarm: Alarm,
    pub(crate) receiver_alarm: Alarm,
    /// Pending work on the CPUs of a sending host that has two.
    pub(crate) wakes: Wakes,
    /// Random stream of the sender, including its congestion controller.
    pub(crate) stream: Stream,
    /// The transfer in progress; `None` while the application is idle between transfers.
    pub(crate) transfer: Option<Transfer>,
    /// Messages that the application has written after that transfer.
    pub(crate) behind: VecDeque<Message>,
    /// Number of transfers that have ended, complete or not.
    pub(crate) transfers_ended: u64,
    /// Whether the application has stopped permanently.
    pub(crate) is_stopped: bool,
    /// State of the congestion controller at the last sample.
    pub(crate) reported: Changes,
}

/// Timers of a connection whose sending host has two CPUs, and pending work.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// The CPU that the pacing timer is armed on, until that CPU has handled it.
    pub(crate) pacing_cpu: Option<usize>,
    /// Expiry of the retransmission, loss probe or RACK timer as last set.
    pub(crate) timer: Option<Time>,
    /// The CPU that last set that timer.
    pub(crate) timer_cpu: usize,
    /// Whether an expired timer waits for its CPU.
    pub(crate) is_timer_queued: bool,
    /// Whether the application waits for its CPU.
    pub(crate) is_write_queued: bool,
}

/// One object sent.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) start: Time,
    /// Size of the object; `None` if unlimited.
    pub(crate) size: Option<Bytes>,
    /// The sender's counters when the transfer became the one in progress.
    pub(crate) before: Counters,
    /// Offset of the transfer's first byte in the stream.
    pub(crate) offset: Bytes,
    pub(crate) rtts: Histogram,
    /// Role of the transfer in its application, for built-in applications.
    pub(crate) item: Option<Item>,
}

impl Connection {
    /// Starts a transfer of the application.
    pub(crate) fn begin(&mut self, now: Time, size: Option<Bytes>) {
        let before = self.sender.info(now).counters;
        let offset = self.sender.written();
        self.transfer = Some(Transfer { start: now, size, before, offset, rtts: Histogram::default(), item: None });
        self.sender.write(now, size.unwrap_or(Bytes::MAX));
    }

    /// Writes a message of an application, whether or not an earlier one is still in flight.
    pub(crate) fn send(&mut self, now: Time, message: Message) {
        let offset = self.sender.written();
        self.sender.write(now, message.size);
        if self.transfer.is_some() {
            self.behind.push_back(message);
        } else {
            self.transfer = Some(self.transfer_of(message, offset, now));
        }
    }

    /// Ends the transfer in progress, and starts that of the next message, if there is one.
    pub(crate) fn advance(&mut self, now: Time) {
        let ended = self.transfer.take();
        self.transfers_ended += 1;
        let Some(message) = self.behind.pop_front() else { return };
        let offset = ended.map_or(Bytes::ZERO, |ended| ended.offset + ended.size.unwrap_or(Bytes::ZERO));
        self.transfer = Some(self.transfer_of(message, offset, now));
    }

    fn transfer_of(&self, message: Message, offset: Bytes, now: Time) -> Transfer {
        let Message { due, size, item, .. } = message;
        let before = self.sender.info(now).counters;
        Transfer { start: due, size: Some(size), before, offset, rtts: Histogram::default(), item: Some(item) }
    }

    /// Stops the application. Sent data is still acknowledged and retransmitted, but no new data is sent.
    pub(crate) fn stop(&mut self, now: Time) {
        self.is_stopped = true;
        self.sender.stop(now);
    }

    /// Whether the current transfer is over, or the connection has stopped without one.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_transfer_over() || (self.is_stopped && self.transfer.is_none())
    }

    /// Whether the transfer in progress is over: all of it is acknowledged, or all data sent before the stop.
    pub(crate) fn is_transfer_over(&self) -> bool {
        let acked = self.sender.acked();
        let is_drained = self.is_stopped && acked == self.sender.written();
        self.transfer.as_ref().is_some_and(|transfer| is_drained || transfer.is_complete(acked))
    }
}

impl Transfer {
    /// Whether every byte of the transfer is acknowledged when `acked` bytes of the stream are.
    pub(crate) fn is_complete(&self, acked: Bytes) -> bool {
        self.size.is_some_and(|size| acked >= self.offset + size)
    }
}
