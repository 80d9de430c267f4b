//! Types exchanged between applications and engines.

use thalweg_units::{Bytes, Rate, Span, Time};

/// Role of a message in its application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Number of the segment, page, frame or message, from 0.
    pub number: u64,
    /// Bitrate of a video segment.
    pub bitrate: Option<Rate>,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the connection within the application, from 0. A connection that is not open yet is opened for the
    /// message.
    pub connection: u64,
    /// Size of the message.
    pub size: Bytes,
    /// Scheduled time, from which the completion time is measured, even if the message is sent late.
    pub due: Time,
    /// Role of the message in its application.
    pub item: Item,
}

/// Actions that an application requests at a wakeup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Messages to send now, in this order.
    pub messages: Vec<Message>,
    /// Time of the next wakeup.
    pub next: Option<Time>,
}

/// Response of an application to a message that was delivered or abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Time for which playback stalled because of the message; `None` for data that is not played.
    pub stall: Option<Span>,
    /// Time of an additional wakeup of the application.
    pub next: Option<Time>,
    /// Whether the application has finished.
    pub is_done: bool,
}
