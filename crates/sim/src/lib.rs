//! Discrete-event simulator of individual packets through one bottleneck.
//!
//! ```text
//!  sender host ──┐                                                        ┌── receiver host
//!  (Sender, cc)  ├─► forward link: loss ► queue ► capacity ► delay ───────┤   (Receiver)
//!  more hosts  ──┘◄─ delay ◄ capacity ◄ queue ◄ loss: reverse link ◄──────┘
//!  UDP background ─► forward link, or reverse link
//! ```
//!
//! Downloads send from left to right, as drawn. Uploads have their `Sender` on the receiver host: their data takes the
//! reverse link, their acknowledgements the forward one.
//!
//! Not modelled: the time that hosts with a dedicated CPU need to handle packets, links between hosts and bottleneck
//! (they are infinitely fast).
//!
//! The simulator is deterministic: the same experiment produces the same rows, in the same order. All randomness comes
//! from the experiment's seed, with a separate stream for each purpose, so that changing one flow's algorithm does not
//! change another flow's arrivals.
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
mod interrupts;
mod invalid;
mod ledger;
mod offloads;
mod open;
mod packet;
mod prefetch;
mod recording;
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

/// Version of the engine's results: it changes whenever the rows of any experiment change, and results of another
/// version are not reused.
pub const RESULT_VERSION: &str = "5";

/// Keys of the scenario that this engine supports, and `key=value` where only the listed values are supported
/// (`docs/reference/engine-protocol.md`).
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
    "path.steps.rtt",
    "path.steps.loss",
    "path.trace",
    "path.trace=csv",
    "path.trace=mahimahi",
    "path.preset",
    "path.rtt",
    "path.ip",
    "path.buffer",
    "path.queue",
    "path.queue=fifo",
    "path.queue=codel",
    "path.queue=fq_codel",
    "path.queue=pie",
    "path.queue=fq_pie",
    "path.queue=red",
    "path.queue=fq",
    "path.queue=dualpi2",
    "path.queue.name",
    "path.queue.name=fifo",
    "path.queue.name=codel",
    "path.queue.name=fq_codel",
    "path.queue.name=pie",
    "path.queue.name=fq_pie",
    "path.queue.name=red",
    "path.queue.name=fq",
    "path.queue.name=dualpi2",
    "path.queue.limit",
    "path.queue.target",
    "path.queue.interval",
    "path.queue.flows",
    "path.queue.quantum",
    "path.queue.initial_quantum",
    "path.queue.flow_limit",
    "path.queue.memory_limit",
    "path.queue.drop_batch",
    "path.queue.ecn",
    "path.queue.ce_threshold",
    "path.queue.ecn_prob",
    "path.queue.min",
    "path.queue.max",
    "path.queue.avpkt",
    "path.queue.burst",
    "path.queue.probability",
    "path.queue.tupdate",
    "path.queue.alpha",
    "path.queue.beta",
    "path.queue.step_thresh",
    "path.queue.coupling_factor",
    "path.queue.classic_protection",
    "path.policer",
    "path.policer.rate",
    "path.policer.burst",
    "path.policer.after",
    "path.aggregation",
    "path.aggregation.interval",
    "path.aggregation.max_bytes",
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
    "path.offloads",
    "path.reverse",
    "path.reverse.rate",
    "path.reverse.steps",
    "path.reverse.steps.at",
    "path.reverse.steps.rate",
    "path.reverse.steps.loss",
    "path.reverse.trace",
    "path.reverse.trace=csv",
    "path.reverse.trace=mahimahi",
    "path.reverse.buffer",
    "path.reverse.queue",
    "path.reverse.queue=fifo",
    "path.reverse.queue=codel",
    "path.reverse.queue=fq_codel",
    "path.reverse.queue=pie",
    "path.reverse.queue=fq_pie",
    "path.reverse.queue=red",
    "path.reverse.queue=fq",
    "path.reverse.queue=dualpi2",
    "path.reverse.queue.name",
    "path.reverse.queue.name=fifo",
    "path.reverse.queue.name=codel",
    "path.reverse.queue.name=fq_codel",
    "path.reverse.queue.name=pie",
    "path.reverse.queue.name=fq_pie",
    "path.reverse.queue.name=red",
    "path.reverse.queue.name=fq",
    "path.reverse.queue.name=dualpi2",
    "path.reverse.queue.limit",
    "path.reverse.queue.target",
    "path.reverse.queue.interval",
    "path.reverse.queue.flows",
    "path.reverse.queue.quantum",
    "path.reverse.queue.initial_quantum",
    "path.reverse.queue.flow_limit",
    "path.reverse.queue.memory_limit",
    "path.reverse.queue.drop_batch",
    "path.reverse.queue.ecn",
    "path.reverse.queue.ce_threshold",
    "path.reverse.queue.ecn_prob",
    "path.reverse.queue.min",
    "path.reverse.queue.max",
    "path.reverse.queue.avpkt",
    "path.reverse.queue.burst",
    "path.reverse.queue.probability",
    "path.reverse.queue.tupdate",
    "path.reverse.queue.alpha",
    "path.reverse.queue.beta",
    "path.reverse.queue.step_thresh",
    "path.reverse.queue.coupling_factor",
    "path.reverse.queue.classic_protection",
    "path.reverse.policer",
    "path.reverse.policer.rate",
    "path.reverse.policer.burst",
    "path.reverse.policer.after",
    "path.reverse.aggregation",
    "path.reverse.aggregation.interval",
    "path.reverse.aggregation.max_bytes",
    "path.reverse.ack_thinning",
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
    "path.reverse.offloads",
    "host.*.cpu_share",
    "host.*.cpu_slice",
    "host.*.cpu_per_packet",
    "host.*.cpu_per_ack",
    "host.*.cpu_slice_jitter",
    "host.*.cpu_model",
    "host.*.cpu_model=slices",
    "host.*.cpu_model=credit",
    "host.*.cpu_credit",
    "host.*.cpu_credit_max",
    "host.*.cpu_baseline",
    "host.*.cpu_load",
    "host.*.cpus",
    "host.*.kernel",
    "host.*.kernel=6.1",
    "host.*.kernel=6.12",
    "host.*.kernel=6.18",
    "host.*.sndbuf_max",
    "host.*.rcvbuf_max",
    "host.*.delay_jitter",
    "host.*.offloads",
    "host.*.interrupt_coalescing",
    "host.*.preset",
    "flow.name",
    "flow.cc",
    "flow.cc_params",
    "flow.paced",
    "flow.ecn",
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
    "flow.app",
    "flow.app=video",
    "flow.app=web",
    "flow.app=call",
    "flow.app=rpc",
    "flow.app=probe",
    "flow.app.name",
    "flow.app.name=video",
    "flow.app.name=web",
    "flow.app.name=call",
    "flow.app.name=rpc",
    "flow.app.name=probe",
    "flow.app.bitrates",
    "flow.app.segment",
    "flow.app.buffer",
    "flow.app.objects",
    "flow.app.depth",
    "flow.app.sizes",
    "flow.app.connections",
    "flow.app.pages",
    "flow.app.think",
    "flow.app.bitrate",
    "flow.app.fps",
    "flow.app.freeze",
    "flow.app.rate",
    "flow.app.interval",
    "flow.app.size",
    "background.rate",
    "background.start",
    "background.stop",
    "background.direction",
    "engine.record",
    // Keys that the simulator ignores.
    "engine.link",
    "engine.traffic",
    "engine.offloads",
    "sweep",
];

/// Results of an experiment in addition to its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Duration of the experiment on its own clock.
    pub simulated: Span,
    /// Packets that passed the bottleneck, the sum of both directions.
    pub packets: u64,
}

/// Checks that an experiment can run, without running it.
///
/// # Errors
/// [`Error::Invalid`] if the experiment is inconsistent or requests a feature that the simulator lacks.
pub fn check(experiment: &Experiment, traces: &Traces) -> Result<(), Error> {
    Simulation::new(experiment, traces).map(drop)
}

/// Runs an experiment to its end. `traces` are the plan's; `is_cancelled` is polled periodically.
///
/// # Errors
/// [`Error::Invalid`] if the experiment is inconsistent, requests a feature that the simulator lacks, or has too many
/// connections open at once while it runs; [`Error::Cancelled`] if `is_cancelled` returned true. The rows emitted so
/// far are then incomplete.
pub fn run(
    experiment: &Experiment,
    traces: &Traces,
    sink: &mut dyn Sink,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Summary, Error> {
    /// Steps between two calls of `is_cancelled`.
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
