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

/// Data to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the connection within the application, from 0. One that is not open yet is opened for the message.
    pub connection: u64,
    /// Size.
    pub size: Bytes,
    /// Scheduled time: its completion time counts from here, even if it is sent late.
    pub due: Time,
    /// Role.
    pub item: Item,
}

/// Requests of an application that was woken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Messages to be sent now, in this order.
    pub messages: Vec<Message>,
    /// Time of its next wakeup.
    pub next: Option<Time>,
}

/// Reaction of an application to a message that was delivered or given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Time for which playback stalled because of it; `None` for data that is not played.
    pub stall: Option<Span>,
    /// Time of the application's next wakeup.
    pub next: Option<Time>,
    /// Whether the application has nothing more to do.
    pub is_done: bool,
}
