//! Checks that the recordings contain these events, because a replay covers only recorded events.

use crate::recording::{self, Call, Recording};

/// An event required for a controller: the controller's name, the event's description, and whether a call contains it.
type Met = (&'static str, &'static str, fn(&Call<'_>) -> bool);

const MET: &[Met] = &[
    ("bbr", "Startup", |call| word(call, "mode") == Some(0)),
    ("bbr", "Drain", |call| word(call, "mode") == Some(1)),
    ("bbr", "ProbeBW", |call| word(call, "mode") == Some(2)),
    ("bbr", "ProbeRTT", |call| word(call, "mode") == Some(3)),
    ("bbr", "every phase of the cycle: probing", |call| word(call, "cycle_idx") == Some(0)),
    ("bbr", "every phase of the cycle: draining", |call| word(call, "cycle_idx") == Some(1)),
    ("bbr", "packet conservation", |call| word(call, "packet_conservation") == Some(1)),
    ("bbr", "the search for a policer", |call| word(call, "lt_is_sampling") == Some(1)),
    ("bbr", "a policer's rate in use", |call| word(call, "lt_use_bw") == Some(1)),
    ("bbr", "a restart after a pause in ProbeBW", |call| {
        call.name == "cwnd_event" && word(call, "mode") == Some(2) && word(call, "idle_restart") == Some(1)
    }),
    ("bbr", "samples that the application limited", |call| {
        call.is_ack() && call.given("rs_is_app_limited") == 1 && word(call, "mode") == Some(2)
    }),
    ("bbr", "an ACK that is too old for a sample", |call| call.is_ack() && call.optional("rs_interval_us").is_none()),
    ("bbr", "an ACK that the receiver has delayed", |call| call.is_ack() && call.given("rs_is_ack_delayed") == 1),
    ("bbr", "bursts of one packet", |call| word(call, "min_tso_segs") == Some(1)),
    ("bbr", "bunches of ACKs", |call| word(call, "extra_acked_0") > Some(10)),
    ("bbr", "recovery", |call| word(call, "prev_ca_state") == Some(3)),
    ("bbr", "a timeout", |call| word(call, "prev_ca_state") == Some(4)),
    ("bbr", "a reduction that was undone", |call| call.name == "undo_cwnd"),
    ("cubic", "an end of slow start found by HyStart", |call| word(call, "found") == Some(1)),
    ("cubic", "a round-trip time that falls in congestion avoidance", |call| {
        call.name == "pkts_acked"
            && word(call, "epoch_start") > Some(0)
            && word(call, "delay_min") < call.given.get("delay_min").copied().flatten()
    }),
    ("cubic", "a K above a second", |call| word(call, "bic_K") > Some(1_024)),
    ("cubic", "growth beyond the last maximum", |call| {
        call.name == "cong_avoid"
            && word(call, "epoch_start") > Some(0)
            && word(call, "cwnd") > word(call, "last_max_cwnd")
    }),
    ("cubic", "a window that Reno would have larger", |call| {
        call.name == "cong_avoid" && word(call, "epoch_start") > Some(0) && word(call, "tcp_cwnd") > word(call, "cwnd")
    }),
    ("cubic", "fast convergence", |call| call.name == "ssthresh" && word(call, "last_max_cwnd") < word(call, "cwnd")),
    ("cubic", "an epoch that a pause has moved", |call| {
        call.name == "cwnd_event" && word(call, "epoch_start") > call.optional("epoch_start")
    }),
    ("cubic", "a timeout", |call| call.name == "set_state" && call.given("arg") == 4),
    ("cubic", "a reduction that was undone", |call| call.name == "undo_cwnd"),
    ("dctcp", "a window with marks that raises alpha", |call| alphas(call).is_some_and(|(old, new)| new > old)),
    ("dctcp", "a window that lowers alpha", |call| alphas(call).is_some_and(|(old, new)| new < old)),
    ("dctcp", "an alpha of 0", |call| word(call, "dctcp_alpha") == Some(0)),
    ("dctcp", "a mark that lowers cwnd by less than a quarter", |call| {
        call.name == "ssthresh" && 4 * call.produced("result") > 3 * call.given("cwnd")
    }),
    ("dctcp", "a loss without marks", |call| call.is_loss() && call.given("ca_state") < 2),
    ("dctcp", "a loss while marks are answered", |call| call.is_loss() && call.given("ca_state") == 2),
    ("dctcp", "a timeout", |call| call.name == "cwnd_event" && call.is_loss()),
    ("dctcp", "a reduction that was undone", |call| call.name == "undo_cwnd"),
    ("reno", "congestion avoidance", |call| call.is_ack() && word(call, "cwnd") > word(call, "ssthresh")),
    ("reno", "a timeout", |call| call.name == "set_state" && call.given("arg") == 4),
    ("reno", "a reduction that was undone", |call| call.name == "undo_cwnd"),
];

fn word(call: &Call<'_>, name: &str) -> Option<u64> {
    call.produced.get(name).copied().flatten()
}

/// Returns DCTCP's alpha in 1024ths, before and after an ACK.
fn alphas(call: &Call<'_>) -> Option<(u64, u64)> {
    let before = call.given.get("dctcp_alpha").copied().flatten()?;
    (call.name == "in_ack_event").then(|| (before, call.produced("dctcp_alpha")))
}

#[test]
fn the_recordings_cover_the_events_that_the_controllers_react_to() {
    let recordings = recording::all();
    let is_met = |(algorithm, _, shows): &&Met| {
        let of_algorithm = |recording: &&Recording| recording.header["algorithm"] == *algorithm;
        recordings.iter().filter(of_algorithm).any(|recording| recording.calls().any(|call| shows(&call)))
    };
    let missing: Vec<String> =
        MET.iter().filter(|met| !is_met(met)).map(|(algorithm, what, _)| format!("{algorithm}: {what}")).collect();
    assert!(missing.is_empty(), "no recording contains: {missing:#?}");
}
