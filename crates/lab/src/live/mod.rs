//! Observes a running machine: whether it gets its CPUs, and whether its BBR connections are slower because it does
//! not.
//!
//! BBR paces, so it does not catch up on what it could not send while its machine was off CPU. Its probing gain of 1.25
//! compensates down to a CPU share of 1/1.25 = 80 %; a lower share costs bandwidth (docs/concepts/cpu-contention.md).
//!
//! The observation covers the network namespaces that exist at the start and that this process may enter. It does not
//! require root.

mod connections;
mod machine;
mod namespaces;

pub use connections::{Connection, Verdict};
pub use machine::Machine;
pub use namespaces::{Missed, Namespace};

use crate::error::Error;
use connections::Connections;
use machine::Watch;
use namespaces::Surveys;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The results of an observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Live {
    /// Duration of the observation.
    pub lasted_ms: u64,
    /// CPU time of the machine.
    pub machine: Machine,
    /// Connections whose data was acknowledged, fastest first.
    pub connections: Vec<Connection>,
    /// Established connections at the end, including idle ones.
    pub established: usize,
    /// Sampled network namespaces.
    pub namespaces: Vec<Namespace>,
    /// Namespaces that could not be sampled.
    pub missed: Missed,
}

/// Sampling interval of connections.
const INTERVAL: Duration = Duration::from_millis(20);

/// Observes this machine and its connections for `window`.
///
/// # Errors
/// If the kernel does not list the connections of a network namespace.
pub fn look(window: Duration) -> Result<Live, Error> {
    let mut surveys = Surveys::open()?;
    let mut connections = Connections::default();
    let watch = Watch::start();
    let start = Instant::now();
    loop {
        let at = start.elapsed();
        connections.begin(at);
        surveys.dump(&mut |netns, connection| connections.take(netns, connection))?;
        if at >= window {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
    let machine = watch.end();
    let established = connections.established();
    let lasted_ms = start.elapsed().as_millis() as u64;
    let (namespaces, missed) = surveys.end(|netns| connections.established_in(netns));
    let connections = connections.judge(&machine, &namespaces);
    Ok(Live { lasted_ms, machine, connections, established, namespaces, missed })
}
