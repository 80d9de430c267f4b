//! The virtual machine of a guest: QEMU's command line, the machine's support for guests, and their clocks.

mod clock;
mod guests;
mod probe;
mod qemu;
mod sys;
mod tsc;

pub(crate) use clock::{ClockReading, Comparison, QUESTIONS as CLOCK_QUESTIONS};
pub use guests::{Guests, Machine};
pub(crate) use probe::last_lines;
pub use qemu::Accelerator;
