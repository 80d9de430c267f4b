//! `thalweg-agent cc` on this machine's own kernel: what is registered, what connections get, what is left.

mod keeping;
mod refusals;
mod stage;
mod transfers;
