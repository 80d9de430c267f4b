//! The engine `kernel` on this machine's kernel. Bounds are generous, because other programs run at the same time.

mod ends;
mod flows;
mod host;
mod programs;
mod records;
mod refusals;
