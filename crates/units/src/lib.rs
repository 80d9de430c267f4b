//! Quantities: instants, spans, rates, sizes, packet counts and probabilities; and the ECN field.
//!
//! Quantities are integers where possible: nanoseconds, bytes, bits per second. They are newtypes, so that a size
//! cannot be confused with a rate. Arithmetic saturates at the ends of the range instead of wrapping. The exception is
//! `-` on [`Bytes`] and [`Packets`], whose underflow is a bug and panics in debug builds.
//!
//! ```
//! use thalweg_units::{Bytes, Rate, Span};
//! let rate: Rate = "40Mbps".parse()?;
//! let rtt: Span = "45ms".parse()?;
//! assert_eq!(rate.bytes_in(rtt), Bytes(225_000));
//! assert_eq!(rate.time_to_send(Bytes(1500)), Span::from_micros(300));
//! # Ok::<(), thalweg_units::ParseError>(())
//! ```

mod ecn;
mod parse;
mod random;
mod rate;
mod size;
mod time;

pub use ecn::Ecn;
pub use parse::ParseError;
pub use random::Probability;
pub use rate::Rate;
pub use size::{Bytes, Packets};
pub use time::{Span, Time};

/// Size of an IP packet that fills the path's MTU.
pub const MTU: Bytes = Bytes(1500);

/// Payload bytes of a full-sized TCP segment: [`MTU`] less 20 bytes of IPv4 header, 20 of TCP header and 12 of the
/// timestamp option, which Linux uses by default.
pub const MSS: Bytes = Bytes(1448);

/// Difference in bytes between an IPv6 header and an IPv4 header without options.
pub const IPV6_EXTRA: Bytes = Bytes(20);

/// Size of an IP packet with a TCP segment without payload: IPv4 and TCP headers with the timestamp option.
pub const HEADER: Bytes = Bytes(52);
