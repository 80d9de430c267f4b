//! The engine `kernel`, on the kernel of this machine. Bounds are generous: other programs run, too.

mod ends;
mod flows;
mod host;
mod programs;
mod records;
mod refusals;
