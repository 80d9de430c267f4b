//! Compares the results of a set of small experiments with a table in git. A diff of the table shows the effect of a
//! change.
//!
//! The control of an experiment is the same one without the tested feature; the two must differ. To accept new numbers:
//! `INSTA_UPDATE=always cargo test --release -p thalweg-sim --test sim golden`, and state the reason in the commit.
//! Increment `RESULT_VERSION` too.

use crate::support::{self, bulk, loss, run};
use std::fmt::Write;
use thalweg_plan::plan::{Background, Buffer, Capacity, Experiment, Step};
use thalweg_trace::Memory;
use thalweg_units::{Bytes, Packets, Probability, Rate, Span, Time};

const RATE: Rate = Rate::from_mbps(50);
const RTT: Span = Span::from_millis(30);

struct Case {
    about: &'static str,
    experiment: Experiment,
    control: fn(&mut Experiment),
}

fn plain(ccs: &[&str]) -> Experiment {
    bulk(RATE, RTT, 1.0, ccs, 10)
}

fn changed(mut experiment: Experiment, change: impl Fn(&mut Experiment)) -> Experiment {
    change(&mut experiment);
    experiment
}

#[allow(clippy::too_many_lines, reason = "a table: a case after the other")]
fn cases() -> Vec<Case> {
    let deep = |experiment: &mut Experiment| support::set_path(experiment, RATE, RTT, 4.0);
    let no_loss = |experiment: &mut Experiment| experiment.forward.loss = loss(0.0);
    let steps = |mbps: [u64; 2]| Capacity::Steps {
        steps: (0..)
            .zip(mbps)
            .map(|(at, mbps)| Step { at_ns: Time(at * 5_000_000_000), rate_bps: Rate::from_mbps(mbps) })
            .collect(),
    };
    vec![
        Case {
            about: "reno, shallow buffer",
            experiment: changed(plain(&["reno"]), |it| support::set_path(it, RATE, RTT, 0.1)),
            control: deep,
        },
        Case {
            about: "cubic, shallow buffer",
            experiment: changed(plain(&["cubic"]), |it| support::set_path(it, RATE, RTT, 0.1)),
            control: deep,
        },
        Case {
            about: "bbr, shallow buffer",
            experiment: changed(plain(&["bbr"]), |it| support::set_path(it, RATE, RTT, 0.1)),
            control: deep,
        },
        Case {
            about: "cubic, 0.5 % loss",
            experiment: changed(plain(&["cubic"]), |it| it.forward.loss = loss(0.005)),
            control: no_loss,
        },
        Case {
            about: "bbr, 5 % loss",
            experiment: changed(plain(&["bbr"]), |it| it.forward.loss = loss(0.05)),
            control: no_loss,
        },
        Case { about: "cubic against bbr, one BDP", experiment: plain(&["cubic", "bbr"]), control: deep },
        Case {
            about: "cubic, reordering",
            experiment: changed(plain(&["cubic"]), |it| {
                it.forward.reorder = Probability::new(0.02).expect("a ratio");
                it.forward.reorder_delay_ns = Span::from_millis(4);
            }),
            control: |it| it.forward.reorder = Probability::NEVER,
        },
        Case {
            about: "bbr, rate falls to a fifth",
            experiment: changed(plain(&["bbr"]), |it| it.forward.capacity = steps([50, 10])),
            control: |it| support::set_path(it, RATE, RTT, 1.0),
        },
        Case {
            about: "cubic, 25 Mbit/s of UDP beside it",
            experiment: changed(plain(&["cubic"]), |it| {
                it.background =
                    vec![Background { rate_bps: Rate::from_mbps(25), start_ns: Time::ZERO, stop_ns: None, up: false }];
            }),
            control: |it| it.background.clear(),
        },
        Case {
            about: "cubic, slow way back",
            experiment: changed(plain(&["cubic"]), |it| {
                it.reverse.capacity =
                    Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate(500_000) }] };
            }),
            control: |it| it.reverse.capacity = Capacity::Unlimited,
        },
        Case {
            about: "bbr, receive buffer of 150 kB",
            experiment: changed(plain(&["bbr"]), |it| {
                it.hosts.get_mut("receiver").expect("there is one").rcvbuf_max_bytes = Bytes(150_000);
            }),
            control: |it| it.hosts.get_mut("receiver").expect("there is one").rcvbuf_max_bytes = Bytes(1 << 31),
        },
        Case {
            about: "upload beside a download, thin way back",
            experiment: two_way(),
            control: |it| it.flows[1].up = false,
        },
        Case {
            about: "upload, 20 Mbit/s of UDP up",
            experiment: changed(two_way(), |it| {
                it.reverse.capacity =
                    Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate::from_mbps(30) }] };
                it.background =
                    vec![Background { rate_bps: Rate::from_mbps(20), start_ns: Time::ZERO, stop_ns: None, up: true }];
            }),
            control: |it| it.background[0].up = false,
        },
    ]
}

fn two_way() -> Experiment {
    let mut experiment = plain(&["cubic", "cubic"]);
    experiment.duration_ns = Some(Span::from_secs(30));
    support::set_path(&mut experiment, Rate(10_800_000), Span::from_millis(40), 1.0);
    experiment.forward.buffer = Buffer::Packets { packets: Packets(100) };
    experiment.reverse.capacity = Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps: Rate(830_000) }] };
    experiment.reverse.buffer = Buffer::Packets { packets: Packets(100) };
    experiment.flows[0].name = "download".to_owned();
    experiment.flows[1].name = "upload".to_owned();
    experiment.flows[1].up = true;
    experiment
}

/// Returns the goodput, retransmissions and median round-trip time of each flow, and the drops of the forward queue,
/// as text.
fn outcome(rows: &Memory) -> String {
    let mut line = String::new();
    for row in &rows.flows {
        let rtt_ms = row.rtt_p50_us.unwrap_or_default() / 1e3;
        let (mbps, retransmits) = (row.goodput_bps / 1e6, row.retransmits.expect("sim counts them"));
        write!(line, "{} {mbps:.2} Mbit/s, {retransmits} retransmits, {rtt_ms:.1} ms; ", row.flow)
            .expect("a string takes all");
    }
    let dropped = rows.queue.iter().rfind(|row| row.link == "forward").map_or(0, |row| row.dropped_packets);
    write!(line, "{dropped} dropped").expect("a string takes all");
    line
}

#[test]
fn outcomes_match_the_snapshot_and_every_control_differs() {
    let mut table = String::new();
    for Case { about, mut experiment, control } in cases() {
        let with = outcome(&run(&experiment));
        control(&mut experiment);
        let without = outcome(&run(&experiment));
        assert_ne!(with, without, "{about}: the control comes out the same");
        writeln!(table, "{about}\n  with:    {with}\n  control: {without}").expect("a string takes all");
    }
    insta::assert_snapshot!(table);
}
