//! One direction of a path: loss, queue, rate and delay, for packets of any type.
//!
//! A [`Link`] reads no clock and does no I/O: its caller passes the time. A late poll does not delay later packets,
//! because departures and arrivals are computed from the times of [`Link::send`] and from each other.
//!
//! # Stages of a packet
//!
//! ```text
//!  send ─► loss ─► duplication ─► thinning ─► policer ─► queue ─► capacity ─► delay ─► aggregation ─► held ─► poll
//!          lost                   thinned     policed    dropped
//! ```
//!
//! 1. **Random loss** (module `loss`).
//! 2. **Duplication**: the copy directly follows its original and is independent from then on.
//! 3. **ACK thinning**: one in N plain acknowledgements of a flow passes (module `thinning`).
//! 4. **Policer**: a token bucket that drops (module `policer`). It can be placed after the capacity instead.
//! 5. **Queue**: a discipline that drops, marks and orders packets (module `queue`). The packet being sent is not in
//!    the queue, so that an idle link still works with a drop-tail buffer of zero.
//! 6. **Capacity**: the times at which packets leave the queue (module `capacity`).
//! 7. **Delay**: propagation plus a uniform jitter, and extra delays (module `delay`). Delay and loss may change over
//!    time (module `profile`).
//! 8. **Aggregation**: packets wait for an opportunity and depart together (module `aggregation`).
//!
//! Not modelled: bit errors, link-layer retransmission, framing overhead (rates count IP packets), a queue shared by
//! several links.
//!
//! # Randomness
//!
//! The caller passes the random number generator. An offered packet draws a number of values that does not depend on
//! its outcome; a disabled feature draws none. Two links with the same seed but different buffers therefore lose the
//! same packets at random.
//!
//! # Example
//!
//! ```
//! use rand_xoshiro::{Xoshiro256PlusPlus, rand_core::SeedableRng};
//! use thalweg_link::{Link, Sent};
//! use thalweg_plan::plan;
//! use thalweg_units::{Bytes, Probability, Packets, Rate, Span, Time};
//!
//! let config = plan::Link {
//!     capacity: plan::Capacity::Steps {
//!         steps: vec![plan::Step { at_ns: Time::ZERO, rate_bps: Rate::from_mbps(12) }],
//!     },
//!     buffer: plan::Buffer::Packets { packets: Packets(1) },
//!     queue: plan::Queue::Fifo {},
//!     loss: plan::Loss::Bernoulli { ratio: Probability::NEVER },
//!     duplicate: Probability::NEVER,
//!     delay_ns: Span::from_millis(20),
//!     jitter_ns: Span::ZERO,
//!     allow_reordering: false,
//!     reorder: Probability::NEVER,
//!     reorder_delay_ns: Span::ZERO,
//!     policer: None,
//!     aggregation: None,
//!     ack_thinning: None,
//!     offloads: false,
//!     profile: None,
//! };
//! let mut link = Link::new(&config, &plan::Traces::default(), 1)?;
//! let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
//!
//! // One packet is being sent, one waits, and the third does not fit.
//! assert_eq!(link.send(Time::ZERO, "first", Bytes(1500), Span::ZERO, &mut rng), Sent::Queued);
//! assert_eq!(link.send(Time::ZERO, "second", Bytes(1500), Span::ZERO, &mut rng), Sent::Queued);
//! assert_eq!(link.send(Time::ZERO, "third", Bytes(1500), Span::ZERO, &mut rng), Sent::Dropped);
//!
//! // 1500 bytes take a millisecond at 12 Mbit/s.
//! let mut arrivals = Vec::new();
//! while let Some(now) = link.next_wake() {
//!     while let Some(packet) = link.poll(now) {
//!         arrivals.push((now.as_micros(), packet));
//!     }
//! }
//! assert_eq!(arrivals, [(21_000, "first"), (22_000, "second")]);
//! # Ok::<(), thalweg_link::LinkError>(())
//! ```

mod aggregation;
mod capacity;
mod delay;
mod error;
mod link;
mod loss;
mod packet;
mod policer;
mod profile;
mod queue;
mod record;
mod stats;
mod thinning;

pub use error::LinkError;
pub use link::{Link, Sent};
pub use packet::Packet;
pub use record::{DropCause, Fate, Outcome};
pub use stats::Stats;
