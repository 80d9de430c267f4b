//! `tune`: chooses the algorithm of each new connection by its destination.
//!
//! ```text
//!  kernel: program ─► events ─► outcomes ─► decisions ─► probabilities ─► maps ─► program
//!                                             │
//!                                             ├─► learned state, log
//!                                             └─► status, explain, metrics
//! ```

mod addresses;
mod arms;
mod chooser;
mod config;
mod decision_engine;
mod decisions;
mod destination;
mod explain;
#[cfg(test)]
mod fake_kernel;
#[cfg(test)]
pub mod fuzzed;
mod guide;
pub mod kernel;
mod log;
mod maps;
mod metrics;
mod options;
pub mod outcome;
mod phrases;
mod prefixes;
mod query;
mod setup;
mod state;
pub mod tuner;
mod view;
mod watchdog_status;
mod wire;

use crate::record::{Options as RecordOptions, record_with};
use crate::signals::Signals;
use chooser::Chooser;
use kernel::{Choice, LossRule};
use setup::Setup;
use std::time::Duration;
use thalweg_policy::Family;
use thalweg_store::Problem;
use tuner::Tuner;

pub use arms::Offer;
pub use options::Options;

/// Maximum time for which the simultaneous connections of a client share one choice.
const TOGETHER: Duration = Duration::from_secs(30);

/// Runs the tuner until SIGINT or SIGTERM, queries a running one, or prints the guide.
///
/// # Errors
/// If an option is invalid, tuning cannot start, its data cannot be written, or a query fails.
pub fn tune(options: &Options, print: &mut dyn FnMut(&str) -> Result<(), Problem>) -> Result<(), Problem> {
    if let Some(what) = &options.command {
        return query::answer(what, print);
    }
    if options.guide {
        return print(&guide::guide(&guide::This, options.json));
    }
    let signals = Signals::catch()?;
    let setup = Setup::new(options, &Offer::read()?)?;
    let own = thalweg_netns::own().map_err(|error| {
        Problem::missing("no-proc", "/proc/self/ns/net", error, "this network namespace", "mount -t proc proc /proc")
    })?;
    let choice = choice(&setup);
    let record = RecordOptions { detail: Some(setup.detail), ..options.record.clone() };
    // The kernel numbers network namespaces with 32 bits.
    let chooser = Chooser::new(setup, own as u32, options.clone());
    let tuner = Tuner::new(choice, chooser, options.record.socket.clone());
    record_with(&record, !options.no_records, Box::new(tuner), &signals)
}

fn choice(setup: &Setup) -> Choice {
    let loss_rule = setup.drop_shift.zip(setup.arms.find("bbr"));
    Choice {
        arms: setup.arms.clone(),
        lengths_v4: setup.lengths(Family::V4),
        lengths_v6: setup.lengths(Family::V6),
        is_dry: setup.is_dry_run,
        takes_private: setup.has_private,
        grace: setup.grace,
        together: TOGETHER,
        loss_rule: loss_rule.map(|(shift, arm)| LossRule { shift: shift.max(1), arm }),
        least: setup.objective.least,
    }
}
