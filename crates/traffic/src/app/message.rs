//! What applications and engines exchange.

use thalweg_units::{Bytes, Rate, Span, Time};

/// What a message is to its application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Number of the segment, page, frame or message, from 0.
    pub number: u64,
    /// Bitrate of a video segment.
    pub bitrate: Option<Rate>,
}

/// Something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the connection within the application, from 0. One that is not open yet is opened for the message.
    pub connection: u64,
    /// Its size.
    pub size: Bytes,
    /// When it was to be sent: its completion time counts from here, however late it is sent.
    pub due: Time,
    /// What it is.
    pub item: Item,
}

/// What an application wants when it was woken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// To be sent now, in this order.
    pub messages: Vec<Message>,
    /// When to wake it again.
    pub next: Option<Time>,
}

/// What an application makes of a message that was delivered or given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// How long playback stood still for want of it; `None` for what is not played.
    pub stall: Option<Span>,
    /// When to wake the application.
    pub next: Option<Time>,
    /// Whether the application has nothing more to do.
    pub is_done: bool,
}
