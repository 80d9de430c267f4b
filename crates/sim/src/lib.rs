//! Discrete-event simulator: packets, one at a time, through one bottleneck.
//!
//! ```text
//!  sender host ──┐                                                        ┌── receiver host
//!  (Sender, cc)  ├─► forward link: loss ► queue ► capacity ► delay ───────┤   (Receiver)
//!  more hosts  ──┘◄─ delay ◄ capacity ◄ queue ◄ loss: reverse link ◄──────┘
//!  UDP background ─► forward link, or reverse link
//! ```
//!
//! Flows that go down send from left to right, as drawn. Those that go up have their `Sender` on the receiver host: their data
//! takes the reverse link, their acknowledgements the forward one.
//!
//! What is modelled: [`thalweg_link`] for each direction, [`thalweg_tcp`] endpoints with the controllers of [`thalweg_cc`],
//! flows that repeat, arrive at random, carry requests and have a longer way than others, UDP at a constant rate, sending
//! hosts that share a CPU with others. What is left out: the time that hosts with a CPU of their own need to handle packets,
//! links between hosts and bottleneck (they are infinitely fast).
//!
//! The simulator is deterministic: the same experiment gives the same rows, in the same order. Everything random comes from
//! the experiment's seed, in streams of its own for each purpose, so that a change of one flow's algorithm does not
//! move another flow's arrivals. Events at the same instant happen in a fixed order.
//!
//! ```
//! # fn experiment() -> thalweg_plan::plan::Experiment {
//! #     serde_json::from_str(include_str!("../tests/data/one-cubic-flow.json")).expect("a plan's experiment")
//! # }
//! let mut rows = thalweg_trace::Memory::default();
//! let summary = thalweg_sim::run(&experiment(), &thalweg_plan::plan::Traces::default(), &mut rows, &|| false)?;
//! assert!(rows.flows[0].completed && summary.packets > 1000);
//! # Ok::<(), thalweg_sim::Error>(())
//! ```

mod calendar;
mod connection;
mod connections;
mod cpu;
mod error;
mod invalid;
mod ledger;
mod packets;
mod rows;
mod shared_cpu;
mod simulation;

pub use error::Error;
pub use ledger::Ledger;
pub use simulation::Simulation;

use thalweg_plan::plan::{Experiment, Traces};
use thalweg_trace::Sink;
use thalweg_units::Span;

/// Name of the engine.
pub const NAME: &str = "sim";

/// Version of what the engine computes: it changes whenever the rows of any experiment do, and results of another version
/// are not taken for this one's.
pub const RESULT_VERSION: &str = "4";

/// Keys of the scenario, and `key=value` for values that are worth telling apart, that this engine honours.
pub const HONOURS: &[&str] = &[
    "name",
    "about",
    "source",
    "duration",
    "repetitions",
    "seed",
    "start_jitter",
    "sample_interval",
    "path.rate",
    "path.steps",
    "path.steps.at",
    "path.steps.rate",
    "path.trace",
    "path.rtt",
    "path.buffer",
    "path.queue",
    "path.queue=fifo",
    "path.queue.name",
    "path.queue.name=fifo",
    "path.loss",
    "path.loss.model",
    "path.loss.model=gilbert-elliott",
    "path.loss.p",
    "path.loss.r",
    "path.loss.loss_bad",
    "path.loss.loss_good",
    "path.jitter",
    "path.allow_reordering",
    "path.reorder",
    "path.reorder.ratio",
    "path.reorder.delay",
    "path.duplicate",
    "path.reverse",
    "path.reverse.rate",
    "path.reverse.steps",
    "path.reverse.steps.at",
    "path.reverse.steps.rate",
    "path.reverse.trace",
    "path.reverse.buffer",
    "path.reverse.queue",
    "path.reverse.queue=fifo",
    "path.reverse.queue.name",
    "path.reverse.queue.name=fifo",
    "path.reverse.loss",
    "path.reverse.loss.model",
    "path.reverse.loss.model=gilbert-elliott",
    "path.reverse.loss.p",
    "path.reverse.loss.r",
    "path.reverse.loss.loss_bad",
    "path.reverse.loss.loss_good",
    "path.reverse.jitter",
    "path.reverse.allow_reordering",
    "path.reverse.reorder",
    "path.reverse.reorder.ratio",
    "path.reverse.reorder.delay",
    "path.reverse.duplicate",
    "host.*.cpu_share",
    "host.*.cpu_slice",
    "host.*.cpu_per_packet",
    "host.*.cpu_per_ack",
    "host.*.kernel",
    "host.*.kernel=6.1",
    "host.*.kernel=6.12",
    "host.*.kernel=6.18",
    "host.*.sndbuf_max",
    "host.*.rcvbuf_max",
    "host.*.delay_jitter",
    "flow.name",
    "flow.cc",
    "flow.cc_params",
    "flow.paced",
    "flow.size",
    "flow.start",
    "flow.stop",
    "flow.repeat",
    "flow.repeat.gap",
    "flow.repeat.until",
    "flow.repeat.count",
    "flow.repeat.arrivals",
    "flow.repeat.arrivals=poisson",
    "flow.repeat.rate",
    "flow.repeat.sizes",
    "flow.count",
    "flow.extra_rtt",
    "flow.host",
    "flow.direction",
    "flow.requests",
    "flow.requests.size",
    "flow.requests.think",
    "flow.requests.count",
    "background.rate",
    "background.start",
    "background.stop",
    "background.direction",
    // Choices that a simulator does not have to make.
    "engine.link",
    "engine.traffic",
    "engine.offloads",
    "engine.record",
    "sweep",
];

/// What came out besides the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How long the experiment took on its own clock.
    pub simulated: Span,
    /// Packets that passed the bottleneck, in both directions together.
    pub packets: u64,
}

/// Runs an experiment to its end. `traces` are the plan's; `is_cancelled` is asked now and then.
///
/// # Errors
/// [`Error::Invalid`] if the experiment contradicts itself or asks for what the simulator does not have,
/// [`Error::Cancelled`] if `is_cancelled` said so. The rows handed over until then are incomplete.
pub fn run(
    experiment: &Experiment,
    traces: &Traces,
    sink: &mut dyn Sink,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Summary, Error> {
    /// Steps between two looks at `is_cancelled`: a few milliseconds of computing.
    const STEPS: u32 = 1 << 14;
    let mut simulation = Simulation::new(experiment, traces)?;
    while (0..STEPS).all(|_| simulation.step(sink)) {
        if is_cancelled() {
            return Err(Error::Cancelled);
        }
        let open = simulation.open_connections();
        if open > invalid::MAX_OPEN_CONNECTIONS {
            return Err(invalid::too_many(format!("{open} open connections: more arrive than the path can carry")));
        }
    }
    Ok(simulation.finish(sink))
}
