//! A running machine, looked at for some seconds: does it get its CPUs, and are BBR connections the slower for it?
//!
//! BBR paces: what it could not send while its machine was off CPU, it never catches up on. So a share of the CPU below
//! 1/1.25 = 80 %, which its probing gain can still win back, costs it bandwidth, and then ever more
//! (docs/concepts/cpu-contention.md).
//!
//! It reads kernel interfaces that all users may read, and changes nothing. Connections are those of all network
//! namespaces that this process may enter and that exist at the start.

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

/// What was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Live {
    /// How long it was looked at.
    pub lasted_ms: u64,
    /// The machine.
    pub machine: Machine,
    /// Connections that had data to send, fastest first.
    pub connections: Vec<Connection>,
    /// Established connections at the end, those that had nothing to send included.
    pub established: usize,
    /// The network namespaces that were sampled.
    pub namespaces: Vec<Namespace>,
    /// Those that could not be.
    pub missed: Missed,
}

/// How often connections are looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// Looks at this machine, and at its connections, for `window`.
///
/// # Errors
/// The kernel does not tell of the connections of this network namespace.
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
