//! The traffic of hosts: times at which connections open, their transfers, and departures of UDP packets.
//!
//! Engines use this crate with the same seed, so that the same experiment has the same random gaps and sizes on each.
//! This crate reads no clock.
//!
//! A [`Series`] is one copy of a flow: one connection, several in sequence or at random times, or those of an
//! application. An [`Agenda`] holds the series of an experiment. A [`Source`] is UDP at a constant rate. An
//! [`Application`] decides on the transfers of its connections. An [`Outbox`] adds the short random time that packets
//! need to leave a host. [`Randomness`] holds separate streams of random numbers.

mod agenda;
mod app;
mod background;
mod outbox;
mod series;
mod streams;

pub use agenda::{Agenda, Opening};
pub use app::{Application, Delivery, Item, Message, Wake};
pub use background::Source;
pub use outbox::Outbox;
pub use series::{Series, until};
pub use streams::{Randomness, Stream, up_to};
