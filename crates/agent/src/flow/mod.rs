//! The kernel side of recording (bpf/flow): its programs, their events, and properties of the machine.

pub mod capacity;
pub mod cgroups;
pub mod clock;
pub mod event_queue;
pub mod load_config;
pub mod measures;
pub mod off_cpu;
pub mod packed;
pub mod program;
pub mod reason;
pub mod record_event;
pub mod rtt;
pub mod scan;
pub mod sys;
pub mod untracked;
pub mod wakeup;
