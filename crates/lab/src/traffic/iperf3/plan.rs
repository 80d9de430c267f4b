//! Which flows iperf3 can make, and how it is called for them.

use crate::error::Error;
use std::net::SocketAddrV4;
use thalweg_plan::plan::{Experiment, Flow, Load, Repeat};
use thalweg_units::{Bytes, Time};

/// Streams that one iperf3 can have: its `MAX_STREAMS`.
const STREAMS: u32 = 128;

/// Local ports of the streams: below those that the kernel gives out, so that no other connection has them.
const FIRST_LOCAL_PORT: u16 = 2_000;
const LAST_LOCAL_PORT: u16 = 9_999;

/// Bytes that iperf3 writes at once, at most: its default.
const BLOCK: u64 = 128 << 10;

/// Seconds to run for when nothing ends a flow; we end it ourselves.
const FOR_EVER: u64 = 86_400;

/// Makes sure that iperf3 can make every flow of an experiment.
///
/// # Errors
/// `not-on-iperf3`, with the key.
pub(super) fn check(experiment: &Experiment) -> Result<(), Error> {
    for flow in &experiment.flows {
        let refused = |key: &str, what: String| {
            Err(Error::new(
                "not-on-iperf3",
                format!("flow.{}.{key}: {what}", flow.name),
                "engine.traffic = \"builtin\" can do it",
            ))
        };
        if flow.paced {
            return refused("paced", "iperf3 paces at a fixed rate only".to_owned());
        }
        match &flow.load {
            Load::App { .. } => return refused("app", "iperf3 has no applications".to_owned()),
            Load::Requests { .. } => return refused("requests", "iperf3 has no requests".to_owned()),
            Load::Sizes { sizes_bytes } if sizes_bytes.len() != 1 => {
                return refused("repeat.sizes", format!("iperf3 sends one size, not {}", sizes_bytes.len()));
            }
            Load::Sizes { .. } if flow.count > 1 => {
                let what = format!("iperf3 counts a size for all streams together, so each of {} copies", flow.count);
                return refused("count", format!("{what} cannot have its own"));
            }
            Load::Sizes { .. } | Load::Unlimited => {}
        }
        if flow.repeat != Repeat::Once {
            return refused("repeat", "iperf3 opens its connections once".to_owned());
        }
        if flow.count > STREAMS {
            return refused("count", format!("iperf3 has at most {STREAMS} streams, not {}", flow.count));
        }
    }
    let streams: u64 = experiment.flows.iter().map(|flow| u64::from(flow.count)).sum();
    let room = u64::from(LAST_LOCAL_PORT - FIRST_LOCAL_PORT + 1);
    if streams > room {
        return Err(Error::new(
            "not-on-iperf3",
            format!("{streams} streams are wanted, and {room} ports are kept for them"),
            "engine.traffic = \"builtin\" can do it",
        ));
    }
    Ok(())
}

/// Local port of a flow's first stream; those of its other copies follow.
pub(super) fn first_local_port(experiment: &Experiment, flow: usize) -> u16 {
    let before: u32 = experiment.flows[..flow].iter().map(|flow| flow.count).sum();
    FIRST_LOCAL_PORT + before as u16
}

/// Port of a flow's server.
pub(super) fn server_port(port: u16, flow: usize) -> u16 {
    port.saturating_add(1).saturating_add(flow as u16)
}

/// What follows `iperf3` on a flow's command line.
pub(super) fn client_arguments(experiment: &Experiment, flow: usize, receiver: SocketAddrV4) -> Vec<String> {
    let config = &experiment.flows[flow];
    let mut arguments: Vec<String> = ["-4", "-J", "-i", "0"].map(str::to_owned).into();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    add("-c", receiver.ip().to_string());
    add("-p", server_port(receiver.port(), flow).to_string());
    add("-C", config.cc.clone());
    add("-P", config.count.to_string());
    add("--cport", first_local_port(experiment, flow).to_string());
    match size(config) {
        Some(Bytes(size)) => {
            add("-n", size.to_string());
            add("-l", block(size).to_string());
        }
        None => add("-t", seconds(experiment, config).to_string()),
    }
    arguments
}

/// What a flow carries; none: without end.
pub(super) fn size(flow: &Flow) -> Option<Bytes> {
    match &flow.load {
        Load::Sizes { sizes_bytes } => sizes_bytes.first().copied(),
        Load::Unlimited | Load::Requests { .. } | Load::App { .. } => None,
    }
}

/// iperf3 sends whole blocks: so large that the last is nearly full.
fn block(size: u64) -> u64 {
    size.div_ceil(size.div_ceil(BLOCK).max(1)).max(1)
}

/// iperf3 takes whole seconds. One more than it needs: we end it at the moment that was planned.
fn seconds(experiment: &Experiment, flow: &Flow) -> u64 {
    let ends = [flow.stop_ns, experiment.duration_ns.map(|duration| Time::ZERO + duration)];
    let end = ends.into_iter().flatten().min();
    end.map_or(FOR_EVER, |end| end.since(flow.start_ns).0.div_ceil(1_000_000_000) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_divide_a_size_with_next_to_nothing_left_over() {
        for size in [1, 1_000, 131_072, 131_073, 1_000_000, 30_000_001] {
            let block = block(size);
            assert!(block <= BLOCK && size.next_multiple_of(block) - size <= size.div_ceil(BLOCK), "{size} {block}");
        }
    }
}
