//! Tests that BBR with parameters matches tests/vectors/bbr_tuned.txt.gz, with which the eBPF programs `bbr_tuned` and
//! `bbr_auto` are tested too.
//!
//! A case consists of a line `case`, lines `cc` and `params` with its algorithm and parameters, and a line for each
//! call: the inputs of the controller, `>`, and its outputs. A value is valid until a line changes it. Input times are
//! in nanoseconds; state variables have the kernel's names and units, with milliseconds on the coarse clock.

use crate::path::Path;
use crate::pipe::{Pipe, at};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand_core::{Rng, TryRng};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use thalweg_cc::{Ack, CaState, Conn, Controller, Hz, RateSample, Window, build};
use thalweg_units::{Bytes, MSS, Packets, Probability, Rate, Span, Time};

type Values = BTreeMap<String, u64>;

/// Denotes a missing value, such as a time without a sample.
const NONE: u64 = u64::MAX;

const STATES: [CaState; 5] = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];

/// A call, its arguments and its results.
#[derive(Clone, Debug, Default)]
struct Call {
    name: String,
    given: Values,
    found: Values,
}

/// Source of random numbers: replays earlier draws, or records new ones.
#[derive(Debug)]
enum Draws<'rng> {
    Recorded(VecDeque<u64>),
    Recording(&'rng mut dyn Draw, Vec<u64>),
}

/// A source of random numbers that implements `Debug`, as [`Draws`] requires.
trait Draw: std::fmt::Debug {
    fn draw(&mut self) -> u32;
}

struct Drawn<'rng>(&'rng mut dyn Rng);

impl std::fmt::Debug for Drawn<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Drawn")
    }
}

impl Draw for Drawn<'_> {
    fn draw(&mut self) -> u32 {
        self.0.next_u32()
    }
}

impl TryRng for Draws<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(match self {
            Draws::Recorded(draws) => draws.pop_front().expect("a number was drawn that was not drawn before") as u32,
            Draws::Recording(rng, draws) => {
                let drawn = rng.draw();
                draws.push(u64::from(drawn));
                drawn
            }
        })
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        panic!("controllers ask for 32 bits")
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        panic!("controllers ask for 32 bits")
    }
}

fn window_values(window: &Window) -> Values {
    let values = [("cwnd", window.cwnd.0), ("ssthresh", window.ssthresh.0), ("pacing_rate", window.pacing_rate.0)];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn found(controller: &dyn Controller, conn: &Conn, window: &Window) -> Values {
    let mut values = window_values(window);
    controller.kernel_words(&mut |name, value| {
        values.insert(name.to_owned(), value);
    });
    values.insert("inflight_bound".to_owned(), 0);
    controller.report(conn, &mut |name, value| {
        if name == "inflight_bound_packets" {
            values.insert("inflight_bound".to_owned(), value as u64);
        }
    });
    values
}

fn conn_values(conn: &Conn) -> Values {
    let values = [
        ("now", conn.now.0),
        ("delivered_at", conn.delivered_at.0),
        ("next_departure", conn.next_departure.0),
        ("srtt", conn.srtt.map_or(NONE, |srtt| srtt.0)),
        ("min_rtt", conn.min_rtt.map_or(NONE, |rtt| rtt.0)),
        ("inflight", conn.inflight.0),
        ("delivered", conn.delivered.0),
        ("lost", conn.lost.0),
        ("state", conn.state as u64),
        ("is_app_limited", u64::from(conn.is_app_limited)),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn ack_values(ack: &Ack) -> Values {
    let rate = ack.rate.expect("every ACK of this sender has a sample");
    let values = [
        ("acked", ack.acked.0),
        ("losses", ack.lost.0),
        ("prior_inflight", ack.prior_inflight.0),
        ("rtt", ack.rtt.map_or(NONE, |rtt| rtt.0)),
        ("is_ack_delayed", u64::from(ack.is_delayed)),
        ("rs_prior_delivered", rate.prior_delivered.0),
        ("rs_delivered", rate.delivered.0),
        ("rs_interval", rate.interval.map_or(NONE, |interval| interval.0)),
        ("rs_is_app_limited", u64::from(rate.is_app_limited)),
    ];
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A call of the controller with the window, which records the random numbers that are drawn.
type Body<'call> = dyn FnMut(&mut dyn Controller, &mut Window, &mut Vec<u64>) + 'call;

/// Forwards calls to a controller, and records those that change its state, except `undo`.
#[derive(Debug)]
struct Recorder {
    inner: Box<dyn Controller>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn record(&mut self, name: &str, mut given: Values, conn: &Conn, window: &mut Window, call: &mut Body<'_>) {
        given.extend(conn_values(conn));
        given.extend(window_values(window));
        let mut draws = Vec::new();
        call(self.inner.as_mut(), window, &mut draws);
        // For the C program: one number for entering ProbeBW and one for jitter.
        for (index, name) in ["random_0", "random_1"].into_iter().enumerate() {
            given.insert(name.to_owned(), draws.get(index).or(draws.first()).copied().unwrap_or(0));
        }
        let found = found(self.inner.as_ref(), conn, window);
        self.calls.lock().expect("one thread").push(Call { name: name.to_owned(), given, found });
    }
}

/// Calls `call` with random numbers that are recorded in `draws`.
fn noting(rng: &mut dyn Rng, draws: &mut Vec<u64>, call: &mut dyn FnMut(&mut dyn Rng)) {
    let mut drawn = Drawn(rng);
    let mut recording = Draws::Recording(&mut drawn, Vec::new());
    call(&mut recording);
    if let Draws::Recording(_, noted) = recording {
        *draws = noted;
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn governs_recovery(&self) -> bool {
        self.inner.governs_recovery()
    }

    fn paces(&self) -> bool {
        self.inner.paces()
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        self.record("init", Values::new(), conn, window, &mut |inner, window, draws| {
            noting(rng, draws, &mut |rng| inner.on_established(conn, window, rng));
        });
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        self.record("ack", ack_values(ack), conn, window, &mut |inner, window, draws| {
            noting(rng, draws, &mut |rng| inner.on_ack(conn, ack, window, rng));
        });
    }

    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets {
        let mut result = Packets::ZERO;
        self.record("ssthresh", Values::new(), conn, &mut window.clone(), &mut |inner, window, _| {
            result = inner.ssthresh(conn, window);
        });
        result
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, rng: &mut dyn Rng) {
        let given = Values::from([("next_state".to_owned(), next as u64)]);
        self.record("set_state", given, conn, window, &mut |inner, window, draws| {
            noting(rng, draws, &mut |rng| inner.on_state(conn, next, window, rng));
        });
    }

    fn on_transmit_start(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        self.record("tx_start", Values::new(), conn, window, &mut |inner, window, draws| {
            noting(rng, draws, &mut |rng| inner.on_transmit_start(conn, window, rng));
        });
    }

    fn undo(&mut self, conn: &Conn, prior_cwnd: Packets, window: &Window) -> Packets {
        self.inner.undo(conn, prior_cwnd, window)
    }

    fn report(&self, conn: &Conn, take: &mut dyn FnMut(&'static str, f64)) {
        self.inner.report(conn, take);
    }
}

/// A test case: its name, its algorithm and parameters, its path, and its end.
struct Case {
    name: &'static str,
    cc: &'static str,
    params: &'static [(&'static str, f64)],
    path: Path,
    end: &'static str,
}

/// Returns a path of 2 Mbit/s and 40 ms, a BDP of 7 packets.
fn small_path() -> Path {
    Path::new("2Mbps", "40ms", 40)
}

fn case(name: &'static str, params: &'static [(&'static str, f64)], change: fn(&mut Path), end: &'static str) -> Case {
    let mut path = small_path();
    change(&mut path);
    Case { name, cc: "bbr", params, path, end }
}

fn cases() -> Vec<Case> {
    let mut cases = cases_of_probing();
    cases.extend(cases_of_probe_rtt());
    cases.extend(cases_of_losses());
    cases.extend(cases_of_auto());
    cases
}

/// Returns cases of `bbr_auto` in which losses, queueing, or both determine the gain.
fn cases_of_auto() -> Vec<Case> {
    let cases = [
        case(
            "a probing gain in a shallow buffer",
            &[("probe_gain", 1.5), ("policer_detection", 0.0)],
            |path| path.buffer = Packets(4),
            "3s",
        ),
        case(
            "a probing gain with random losses",
            &[("auto_max_gain", 1.5), ("auto_loss_response", 4.0), ("auto_weight", 0.5), ("probe_drain_gain", 0.8)],
            |path| path.loss = Probability::new(0.06).expect("a probability"),
            "3s",
        ),
        case(
            "a probing gain with a queue and ProbeRTT",
            &[
                ("auto_max_gain", 1.4),
                ("auto_weight", 1.0),
                ("probe_gain", 1.5),
                ("cruise_gain", 1.05),
                ("probe_rtt_interval_s", 1.0),
            ],
            |_| (),
            "3s",
        ),
    ];
    cases.into_iter().map(|case| Case { cc: "bbr_auto", ..case }).collect()
}

fn cases_of_probing() -> Vec<Case> {
    vec![
        case("defaults", &[], |_| (), "2s"),
        case(
            "gains",
            &[
                ("probe_gain", 1.5),
                ("probe_drain_gain", 0.6),
                ("cruise_gain", 0.95),
                ("cruise_phases", 3.0),
                ("cwnd_gain", 1.5),
                ("startup_gain", 2.0),
                ("startup_cwnd_gain", 3.0),
                ("drain_gain", 0.5),
            ],
            |path| path.lead = Span::from_millis(2),
            "2500ms",
        ),
        case(
            "probing by time",
            &[("probe_clock", 1.0), ("probe_interval_ms", 250.0), ("probe_jitter", 0.4)],
            |_| (),
            "3s",
        ),
        case("many phases with jitter", &[("cruise_phases", 12.0), ("probe_jitter", 0.5)], |_| (), "3s"),
    ]
}

fn cases_of_probe_rtt() -> Vec<Case> {
    vec![
        case(
            "a shallow ProbeRTT",
            &[("probe_rtt_interval_s", 0.7), ("probe_rtt_duration_ms", 120.0), ("probe_rtt_bdp_share", 0.8)],
            |path| path.rate = Rate::from_mbps(4),
            "2500ms",
        ),
        case(
            "a deep ProbeRTT and pauses",
            &[("probe_rtt_interval_s", 0.8), ("probe_rtt_cwnd", 2.0), ("probe_rtt_duration_ms", 50.0)],
            |path| path.bursts = Some((Packets(14), Span::from_millis(90))),
            "4s",
        ),
    ]
}

fn cases_of_losses() -> Vec<Case> {
    vec![
        case(
            "losses",
            &[("loss_threshold", 0.02), ("loss_beta", 0.6), ("headroom", 0.2), ("policer_detection", 0.0)],
            |path| path.loss = Probability::new(0.04).expect("a probability"),
            "4s",
        ),
        case(
            "a policer",
            &[("probe_clock", 1.0), ("probe_interval_ms", 100.0)],
            |path| {
                path.rtt = Span::from_millis(5);
                path.rate = Rate::from_mbps(5);
                path.policer = Some((Rate::from_mbps(1), Packets(20)));
            },
            "5s",
        ),
        case("bunches of ACKs", &[("aggregation_gain", 0.5)], |path| path.ack_grid = Span::from_millis(30), "3s"),
    ]
}

fn record(case: &Case) -> Vec<Call> {
    let params = case.params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let recorder = Recorder { inner: build(case.cc, &params).expect("a case"), calls: Arc::clone(&calls) };
    Pipe::around(case.path.clone(), Box::new(recorder), 7).run_until(at(case.end));
    let calls = calls.lock().expect("one thread");
    calls.clone()
}

fn file() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/bbr_tuned.txt.gz")
}

/// Returns the values that differ from `last` as text, and stores them in `last`.
fn changes(values: &Values, last: &mut Values) -> String {
    let mut text = String::new();
    for (name, value) in values {
        if last.insert(name.clone(), *value) != Some(*value) {
            let _ = write!(text, " {name}={value}");
        }
    }
    text
}

/// Rewrites the file after a change of BBR's decisions: `cargo test -p thalweg-cc -- --ignored record_the_vectors`.
#[test]
#[ignore = "it writes tests/vectors/bbr_tuned.txt.gz"]
fn record_the_vectors() {
    let mut text = String::new();
    for case in cases() {
        let params: String = case.params.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let _ = writeln!(text, "case {}\ncc {}\nparams{params}", case.name, case.cc);
        let mut last = Values::new();
        for call in record(&case) {
            let given = changes(&call.given, &mut last);
            let _ = writeln!(text, "{}{given} >{}", call.name, changes(&call.found, &mut last));
        }
    }
    let mut out = GzEncoder::new(std::fs::File::create(file()).expect("the file"), Compression::best());
    out.write_all(text.as_bytes()).and_then(|()| out.finish().map(drop)).expect("the file");
}

fn set(values: &mut Values, words: &str) {
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        values.insert(name.to_owned(), value.parse().expect("a whole number"));
    }
}

struct Given<'values>(&'values Values);

impl Given<'_> {
    fn get(&self, name: &str) -> u64 {
        self.0[name]
    }

    fn span(&self, name: &str) -> Option<Span> {
        Some(self.get(name)).filter(|value| *value != NONE).map(Span)
    }

    fn conn(&self) -> Conn {
        let now = Time(self.get("now"));
        Conn {
            now,
            jiffies: Hz::MILLISECOND_TICK.at(now),
            hz: Hz::MILLISECOND_TICK,
            mss: MSS,
            state: STATES[self.get("state") as usize],
            srtt: self.span("srtt"),
            min_rtt: self.span("min_rtt"),
            inflight: Packets(self.get("inflight")),
            delivered: Packets(self.get("delivered")),
            delivered_at: Time(self.get("delivered_at")),
            delivered_ce: Packets::ZERO,
            lost: Packets(self.get("lost")),
            last_sent_jiffies: Hz::MILLISECOND_TICK.at(now),
            una_bytes: Bytes::ZERO,
            next_bytes: Bytes::ZERO,
            bytes_sent: Bytes::ZERO,
            is_receiver_limited: false,
            is_cwnd_exhausted: false,
            is_cwnd_limited: false,
            is_app_limited: self.get("is_app_limited") != 0,
            is_paced: true,
            next_departure: Time(self.get("next_departure")),
        }
    }

    fn ack(&self) -> Ack {
        Ack {
            acked: Packets(self.get("acked")),
            lost: Packets(self.get("losses")),
            prior_inflight: Packets(self.get("prior_inflight")),
            rtt: self.span("rtt"),
            is_delayed: self.get("is_ack_delayed") != 0,
            is_marked: false,
            is_probe_answer: false,
            rate: Some(RateSample {
                prior_delivered: Packets(self.get("rs_prior_delivered")),
                delivered: Packets(self.get("rs_delivered")),
                lost: Packets::ZERO,
                delivered_ce: Packets::ZERO,
                inflight_at_send: Packets::ZERO,
                interval: self.span("rs_interval"),
                is_app_limited: self.get("rs_is_app_limited") != 0,
            }),
        }
    }

    fn window(&self) -> Window {
        Window {
            cwnd: Packets(self.get("cwnd")),
            ssthresh: Packets(self.get("ssthresh")),
            pacing_rate: Rate(self.get("pacing_rate")),
            is_held_back: false,
        }
    }
}

fn replay(controller: &mut dyn Controller, name: &str, given: &Given<'_>) -> Values {
    let (conn, mut window) = (given.conn(), given.window());
    let mut rng = Draws::Recorded([given.get("random_0"), given.get("random_1")].into());
    match name {
        "init" => controller.on_established(&conn, &mut window, &mut rng),
        "ack" => controller.on_ack(&conn, &given.ack(), &mut window, &mut rng),
        "ssthresh" => drop(controller.ssthresh(&conn, &window)),
        "set_state" => controller.on_state(&conn, STATES[given.get("next_state") as usize], &mut window, &mut rng),
        "tx_start" => controller.on_transmit_start(&conn, &mut window, &mut rng),
        other => panic!("unknown call {other}"),
    }
    found(controller, &conn, &window)
}

#[test]
fn bbr_with_parameters_matches_the_vectors() {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(file()).expect("the file")).read_to_string(&mut text).expect("text");
    let mut controller = None;
    let mut values = Values::new();
    let (mut case, mut cc, mut calls) = ("", "", 0);
    for (line, number) in text.lines().zip(1..) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "case" => case = rest,
            "cc" => cc = rest,
            "params" => {
                let params = rest.split_whitespace().map(|word| word.split_once('=').expect("NAME=VALUE"));
                let params = params.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect();
                controller = Some(build(cc, &params).expect("parameters of its algorithm"));
                values.clear();
            }
            _ => {
                let (given, expected) = rest.split_once('>').expect("results after >");
                set(&mut values, given);
                let results = replay(controller.as_mut().expect("a case").as_mut(), name, &Given(&values));
                set(&mut values, expected);
                for (name, value) in results {
                    assert_eq!(value, values[&name], "line {number} of {case}: {name}");
                }
                calls += 1;
            }
        }
    }
    assert!(calls > 2_000, "{calls}");
}
