//! Experiments for these tests.

use std::collections::BTreeMap;
use thalweg_plan::plan::{Buffer, Capacity, Choices, Experiment, Flow, Host, Link, Load, Loss, Queue};
use thalweg_units::{Bytes, Probability, Span};

/// Size of socket buffers and queues that do not limit a flow.
const UNBOUNDED: Bytes = Bytes(i32::MAX as u64);

/// Returns an experiment on a path like that between two namespaces.
pub fn experiment(flows: Vec<Flow>) -> Experiment {
    let link = Link {
        capacity: Capacity::Unlimited,
        buffer: Buffer::Bytes { bytes: UNBOUNDED },
        queue: Queue::Fifo {},
        loss: Loss::Bernoulli { ratio: Probability::NEVER },
        duplicate: Probability::NEVER,
        delay_ns: Span::from_micros(20),
        jitter_ns: Span::ZERO,
        allow_reordering: false,
        reorder: Probability::NEVER,
        reorder_delay_ns: Span::ZERO,
        policer: None,
        aggregation: None,
        ack_thinning: None,
        offloads: false,
        profile: None,
    };
    let host = Host {
        sndbuf_max_bytes: UNBOUNDED,
        rcvbuf_max_bytes: UNBOUNDED,
        delay_jitter_ns: Span::ZERO,
        cpu: None,
        second_cpu: false,
        co_tenants: 0,
        kernel: None,
        offloads: false,
        interrupt_coalescing_ns: Span::ZERO,
        qdisc: None,
    };
    Experiment {
        experiment: 0,
        repetition: 0,
        sweep: BTreeMap::new(),
        seed: 7,
        duration_ns: None,
        sample_interval_ns: Span::from_millis(10),
        start_jitter_ns: Span::ZERO,
        ipv6: false,
        rtt_ns: Span::from_micros(40),
        forward: link.clone(),
        reverse: link,
        hosts: BTreeMap::from([("receiver".to_owned(), host.clone()), ("sender".to_owned(), host)]),
        flows,
        background: Vec::new(),
        engine: Choices::default(),
    }
}

/// Returns a flow of one connection.
pub fn flow(name: &str, load: Load) -> Flow {
    Flow::new(name, "reno", load)
}

/// Returns a load that draws one of these sizes.
pub fn sizes(sizes: &[u64]) -> Load {
    Load::Sizes { sizes_bytes: sizes.iter().map(|size| Bytes(*size)).collect() }
}
