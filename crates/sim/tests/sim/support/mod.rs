//! Experiments for tests: a simple one, and modifications of it.

use thalweg_plan::plan::{Buffer, Capacity, Experiment, Flow, Load, Loss, Queue, Step, Traces};
use thalweg_trace::{FlowRow, Memory};
use thalweg_units::{Bytes, Probability, Rate, Span, Time};

/// Returns one CUBIC flow of 5 MB over 20 Mbit/s and 40 ms, with a buffer of one BDP.
pub fn experiment() -> Experiment {
    serde_json::from_str(include_str!("../../data/one-cubic-flow.json")).expect("the file is an experiment")
}

/// Returns a path with unlimited flows of `ccs`, named after their algorithm and position, for `seconds`.
pub fn bulk(rate: Rate, rtt: Span, buffer_bdp: f64, ccs: &[&str], seconds: u64) -> Experiment {
    let mut experiment = experiment();
    set_path(&mut experiment, rate, rtt, buffer_bdp);
    experiment.duration_ns = Some(Span::from_secs(seconds));
    experiment.start_jitter_ns = rtt;
    let template = experiment.flows[0].clone();
    experiment.flows =
        ccs.iter().enumerate().map(|(index, cc)| flow(&template, &format!("{cc}-{index}"), cc)).collect();
    experiment
}

pub fn flow(template: &Flow, name: &str, cc: &str) -> Flow {
    Flow { name: name.to_owned(), cc: (*cc).to_owned(), load: Load::Unlimited, ..template.clone() }
}

pub fn set_path(experiment: &mut Experiment, rate: Rate, rtt: Span, buffer_bdp: f64) {
    experiment.rtt_ns = rtt;
    experiment.forward.delay_ns = rtt.scale(1, 2);
    experiment.reverse.delay_ns = rtt.scale(1, 2);
    experiment.forward.capacity = Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: rate }] };
    let bytes = (rate.bytes_in(rtt).0 as f64 * buffer_bdp) as u64;
    experiment.forward.buffer = Buffer::Bytes { bytes: Bytes(bytes) };
}

pub fn loss(ratio: f64) -> Loss {
    Loss::Bernoulli { ratio: Probability::new(ratio).expect("a ratio from 0 to 1") }
}

pub fn run(experiment: &Experiment) -> Memory {
    run_with_traces(experiment, &Traces::default())
}

pub fn run_with_traces(experiment: &Experiment, traces: &Traces) -> Memory {
    let mut rows = Memory::default();
    thalweg_sim::run(experiment, traces, &mut rows, &|| false).expect("the experiment is sound");
    rows
}

pub fn of<'a>(rows: &'a Memory, flow: &str) -> Vec<&'a FlowRow> {
    rows.flows.iter().filter(|row| &*row.flow == flow).collect()
}

pub fn share(row: &FlowRow, rate: Rate) -> f64 {
    row.goodput_bps / rate.0 as f64
}

pub fn dualpi2() -> Queue {
    Queue::Dualpi2 {
        target_ns: Span::from_millis(15),
        tupdate_ns: Span::from_millis(16),
        alpha: 0.16,
        beta: 3.2,
        step_thresh_ns: Span::from_millis(1),
        coupling_factor: 2,
        classic_protection: 10,
    }
}
