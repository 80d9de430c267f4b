//! How much of a processor a guest's processor gets.

use crate::error::Error;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;
use thalweg_plan::plan::Host;

/// What a guest's processors are exposed to, from when it begins until it is dropped.
#[derive(Debug)]
pub struct Contention {
    processors: Vec<u32>,
    began: Instant,
    had_ns: Option<u64>,
}

/// Begins, as the scenario wants it of this host. `processors` are the threads that are its processors.
///
/// # Errors
/// The system refuses it.
pub fn apply(processors: Vec<u32>, _host: &Host) -> Result<Contention, Error> {
    let had_ns = running_ns(&processors);
    Ok(Contention { processors, began: Instant::now(), had_ns })
}

impl Contention {
    /// What the processors got since it began, by names that carry their units.
    pub fn measure(&self) -> BTreeMap<String, f64> {
        let lasted_ns = self.began.elapsed().as_nanos() as f64 * self.processors.len() as f64;
        let got_ns = running_ns(&self.processors).zip(self.had_ns).map(|(now, had)| now.saturating_sub(had) as f64);
        got_ns.map(|got_ns| ("cpu_share_received".to_owned(), got_ns / lasted_ns)).into_iter().collect()
    }
}

/// How long these threads have run in all; nothing where the system does not say.
fn running_ns(threads: &[u32]) -> Option<u64> {
    let of = |thread: &u32| -> Option<u64> {
        fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    threads.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::{Bytes, Span};

    #[test]
    fn a_thread_that_runs_all_the_time_gets_about_all_of_a_processor_and_one_that_sleeps_nothing() {
        let (one, none) = (Bytes(1), Span::ZERO);
        let host =
            Host { sndbuf_max_bytes: one, rcvbuf_max_bytes: one, delay_jitter_ns: none, cpu: None, co_tenants: 0 };
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let busy = apply(vec![me], &host).unwrap();
        let had = running_ns(&[me]).unwrap();
        while running_ns(&[me]).unwrap() < had + 5_000_000 {}
        let share = busy.measure()["cpu_share_received"];
        // Others may want the processor, too; more than one is not to be had.
        assert!(share > 0.0 && share < 1.01, "{share}");
        assert!(apply(vec![u32::MAX], &host).unwrap().measure().is_empty(), "nobody knows of such a thread");
    }
}
