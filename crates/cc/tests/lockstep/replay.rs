//! Replays the inputs of the kernel's controller to this crate's controller and compares the results.
//!
//! The controller's state is not set to the kernel's during a connection. The window is changed only where the kernel's
//! connection has changed its own between two calls. So a wrong decision is visible as long as it has consequences.
//!
//! The random phase in which BBR enters ProbeBW is taken from the recording: if the controller draws a random number,
//! it receives the one that selects the kernel's phase.

use crate::recording::{Call, Recording};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use thalweg_cc::{Ack, CaState, Conn, Controller, Hz, Jiffies, RateSample, Window};
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

/// Linux: TCP_INFINITE_SSTHRESH.
const NO_SSTHRESH: u64 = 0x7FFF_FFFF;

/// Linux: no round-trip time sample yet.
const NO_RTT: u64 = u32::MAX as u64;

/// Linux: CA_EVENT_TX_START.
const TX_START: u64 = 0;

/// Linux: CA_EVENT_LOSS.
const LOSS: u64 = 3;

/// An output of this crate's controller that differs from the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Line of the call in the recording.
    pub line: usize,
    pub call: String,
    /// Number of this ACK or of the latest one, from 1; 0 before the first.
    pub ack: usize,
    pub name: String,
    pub kernel: u64,
    /// This crate's value.
    pub ours: u64,
}

impl fmt::Display for Deviation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Deviation { line, call, ack, name, kernel, ours } = self;
        write!(out, "line {line}, {call}, ACK {ack}: {name} is {kernel} in the kernel, {ours} here")
    }
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of replayed ACKs.
    pub acks: usize,
    /// Number of replayed calls of all kinds.
    pub calls: usize,
    /// Number of compared values.
    pub compared: usize,
    /// Number of ACKs with any difference.
    pub unequal_acks: usize,
    pub deviations: Vec<Deviation>,
}

pub fn replay(recording: &Recording, controller: &mut dyn Controller) -> Outcome {
    let hz = Hz(recording.header["hz"].parse().unwrap());
    let mut replay = Replay { controller, window: None, left: BTreeMap::new(), outcome: Outcome::default() };
    for call in recording.calls() {
        replay.step(&call, hz);
    }
    replay.outcome
}

struct Replay<'a> {
    controller: &'a mut dyn Controller,
    window: Option<Window>,
    /// The kernel's window after the previous call.
    left: BTreeMap<&'static str, u64>,
    outcome: Outcome,
}

impl Replay<'_> {
    fn step(&mut self, call: &Call<'_>, hz: Hz) {
        let conn = conn(call, hz);
        let mut window = self.window(call);
        let mut phase = Phase(call.produced.get("cycle_idx").copied().flatten());
        self.outcome.calls += 1;
        self.outcome.acks += usize::from(call.is_ack());
        let earlier = self.outcome.deviations.len();
        window.is_held_back = false;
        match call.name {
            "init" => {
                self.controller.on_established(&conn, &mut window, &mut phase);
                if call.produced.contains_key("sndbuf_expand") {
                    self.compare(call, "sndbuf_expand", self.controller.sndbuf_factor());
                }
            }
            "in_ack_event" => self.controller.on_packets_acked(&conn, Packets::ZERO, None, &mut window),
            "pkts_acked" => {
                let rtt = call.optional("rtt_us").map(Span::from_micros);
                self.controller.on_packets_acked(&conn, Packets(call.given("acked")), rtt, &mut window);
            }
            "cong_avoid" | "cong_control" => self.controller.on_ack(&conn, &ack(call), &mut window, &mut phase),
            "ssthresh" => {
                let ssthresh = self.controller.ssthresh(&conn, &window);
                self.compare(call, "result", ssthresh_word(ssthresh));
                self.compare_window(call, &conn, &window);
                window.ssthresh = ssthresh;
                self.left.insert("ssthresh", call.produced("result"));
            }
            "set_state" => self.controller.on_state(&conn, ca_state(call.given("arg")), &mut window, &mut phase),
            "cwnd_event" => match call.given("arg") {
                TX_START => self.controller.on_transmit_start(&conn, &mut window, &mut phase),
                LOSS => self.controller.on_timeout(&conn, &mut window),
                _ => {}
            },
            "undo_cwnd" => {
                let cwnd = self.controller.undo(&conn, Packets(call.given("prior_cwnd")), &window);
                self.compare(call, "result", cwnd.0);
                self.compare_window(call, &conn, &window);
                window.cwnd = cwnd;
                self.left.insert("cwnd", call.produced("result"));
            }
            other => panic!("line {}: unknown call {other}", call.line),
        }
        if !matches!(call.name, "ssthresh" | "undo_cwnd") {
            self.compare_window(call, &conn, &window);
        }
        if matches!(call.name, "init" | "cong_control") && call.produced.contains_key("min_tso_segs") {
            self.compare(call, "min_tso_segs", self.controller.min_burst(&window).0);
        }
        self.compare_state(call);
        self.outcome.unequal_acks += usize::from(call.is_ack() && self.outcome.deviations.len() > earlier);
        self.window = Some(window);
    }

    /// Returns the window at the start of a call: as the previous call left it, except for changes by the kernel's
    /// connection in between.
    fn window(&mut self, call: &Call<'_>) -> Window {
        let (cwnd, ssthresh, rate) = (call.given("cwnd"), call.given("ssthresh"), call.given("pacing_rate"));
        let changed = |name: &str, value: u64| self.left.get(name) != Some(&value);
        let mut window = self.window.unwrap_or(Window {
            cwnd: Packets::ZERO,
            ssthresh: Packets::ZERO,
            pacing_rate: Rate::ZERO,
            is_held_back: false,
        });
        if changed("cwnd", cwnd) {
            window.cwnd = Packets(cwnd);
        }
        if changed("ssthresh", ssthresh) {
            window.ssthresh = if ssthresh == NO_SSTHRESH { Packets::MAX } else { Packets(ssthresh) };
        }
        if changed("pacing_rate", rate) {
            window.pacing_rate = Rate(rate.saturating_mul(8));
        }
        for name in ["cwnd", "ssthresh", "pacing_rate"] {
            self.left.insert(name, call.produced(name));
        }
        window
    }

    fn compare_window(&mut self, call: &Call<'_>, conn: &Conn, window: &Window) {
        self.compare(call, "cwnd", window.cwnd.0);
        self.compare(call, "ssthresh", ssthresh_word(window.ssthresh));
        assert_eq!(window.pacing_rate.0 % 8, 0, "whole bytes per second");
        self.compare(call, "pacing_rate", window.pacing_rate.0 / 8);
        let app_limited =
            if window.is_held_back { (conn.delivered + conn.inflight).0.max(1) } else { call.given("app_limited") };
        self.compare(call, "app_limited", app_limited);
    }

    fn compare_state(&mut self, call: &Call<'_>) {
        let mut words = Vec::new();
        self.controller.kernel_words(&mut |name, value| words.push((name, value)));
        for (name, ours) in words {
            self.compare(call, name, ours);
        }
    }

    fn compare(&mut self, call: &Call<'_>, name: &str, ours: u64) {
        let kernel = call.produced(name);
        self.outcome.compared += 1;
        if kernel != ours {
            let (line, ack) = (call.line, self.outcome.acks);
            let (call, name) = (call.name.to_owned(), name.to_owned());
            self.outcome.deviations.push(Deviation { line, call, ack, name, kernel, ours });
        }
    }
}

fn ssthresh_word(ssthresh: Packets) -> u64 {
    if ssthresh == Packets::MAX { NO_SSTHRESH } else { ssthresh.0 }
}

fn conn(call: &Call<'_>, hz: Hz) -> Conn {
    let srtt_us = call.given("srtt_us_8") >> 3;
    let min_rtt_us = call.given("min_rtt_us");
    Conn {
        now: Time(call.given("clock_ns")),
        jiffies: Jiffies(call.given("jiffies")),
        hz,
        mss: Bytes(call.given("mss")),
        state: ca_state(call.given("ca_state")),
        srtt: (call.given("srtt_us_8") > 0).then_some(Span::from_micros(srtt_us)),
        min_rtt: (min_rtt_us < NO_RTT).then_some(Span::from_micros(min_rtt_us)),
        inflight: Packets(call.given("inflight")),
        delivered: Packets(call.given("delivered")),
        delivered_at: Time(call.given("delivered_us") * 1_000),
        // Recorded only for DCTCP.
        delivered_ce: Packets(call.given.get("delivered_ce").copied().flatten().unwrap_or(0)),
        lost: Packets(call.given("lost")),
        last_sent_jiffies: Jiffies(call.given("last_sent_jiffies")),
        una_bytes: Bytes(call.given("una")),
        next_bytes: Bytes(call.given("next")),
        bytes_sent: Bytes(call.given("next")),
        is_receiver_limited: false,
        is_cwnd_limited: call.given("is_cwnd_limited") > 0,
        is_cwnd_exhausted: call.given("is_cwnd_limited") > 0,
        is_app_limited: call.given("app_limited") > 0,
        // Only CUBIC uses this field, and it was recorded without pacing.
        is_paced: false,
        next_departure: Time(call.given("departure_ns")),
    }
}

fn ack(call: &Call<'_>) -> Ack {
    if call.name == "cong_avoid" {
        let acked = Packets(call.given("acked"));
        return Ack {
            acked,
            lost: Packets::ZERO,
            prior_inflight: Packets::ZERO,
            rtt: None,
            is_delayed: false,
            is_marked: false,
            is_probe_answer: false,
            rate: None,
        };
    }
    let rate = call.optional("rs_delivered").map(|delivered| RateSample {
        prior_delivered: Packets(call.given("rs_prior_delivered")),
        delivered: Packets(delivered),
        // Version 1 of BBR uses none of these fields.
        lost: Packets::ZERO,
        delivered_ce: Packets::ZERO,
        inflight_at_send: Packets::ZERO,
        interval: call.optional("rs_interval_us").map(Span::from_micros),
        is_app_limited: call.given("rs_is_app_limited") > 0,
    });
    Ack {
        acked: Packets(call.given("acked")),
        lost: Packets(call.given("losses")),
        prior_inflight: Packets(call.given("prior_inflight")),
        rtt: call.optional("rtt_us").map(Span::from_micros),
        is_delayed: call.given("rs_is_ack_delayed") > 0,
        is_marked: false,
        is_probe_answer: false,
        rate,
    }
}

fn ca_state(number: u64) -> CaState {
    match number {
        0 => CaState::Open,
        1 => CaState::Disorder,
        2 => CaState::Cwr,
        3 => CaState::Recovery,
        4 => CaState::Loss,
        _ => panic!("there is no state {number} of recovery"),
    }
}

/// Source of the random number that makes BBR start in a given phase of ProbeBW: the k-th seventh of the range (k from
/// 0 to 6) selects phase (8 - k) mod 8.
#[derive(Debug)]
struct Phase(Option<u64>);

impl rand_core::TryRng for Phase {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let phase = self.0.expect("only BBR asks for random numbers");
        let steps_down = (8 - phase) % 8;
        // The drain cannot be selected: the phases will then differ.
        Ok(((steps_down.min(6) << 32).div_ceil(7)) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("controllers ask for 32 bits")
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        panic!("controllers ask for 32 bits")
    }
}
