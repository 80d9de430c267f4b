//! The decisions of `bbr_tuned` and `bbr_auto` in C match the vectors with which crates/cc is also tested. The vectors
//! supply the state of the kernel's BBR.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_cc::Word;

type Values = BTreeMap<String, u64>;

const NONE: u64 = u64::MAX;

const PROBE_RTT: u64 = 3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles the decisions as an ordinary program.
fn driver(folder: &Path) -> PathBuf {
    let program = folder.join("tuned_driver");
    let source = root().join("bpf/cc/bbr_tuned/test/tuned_driver.c");
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover", "-o"])
        .args([&program, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "tuned.h does not compile as ordinary C");
    program
}

fn vectors() -> String {
    let mut text = String::new();
    let file = File::open(root().join("tests/vectors/bbr_tuned.txt.gz")).expect("the vectors");
    GzDecoder::new(file).read_to_string(&mut text).expect("text");
    text
}

fn set(values: &mut Values, words: &str) {
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        values.insert(name.to_owned(), value.parse().expect("a whole number"));
    }
}

/// Formats the parameters as the loader sets them, except that ProbeRTT's times are in milliseconds, the unit of the
/// vectors.
fn params(cc: &str, words: &str) -> String {
    let params = words.split_whitespace().map(|word| word.split_once('=').expect("NAME=VALUE"));
    let params = params.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect();
    let words = thalweg_cc::bbr_words(cc, &params).expect("parameters of its algorithm");
    let divisor = |word: &Word| if word.param.starts_with("probe_rtt") && word.scale >= 1000 { 1000 } else { 1 };
    let lines =
        words.iter().enumerate().map(|(index, word)| format!("word{index} {}\n", word.value.div_ceil(divisor(word))));
    lines.collect()
}

/// Formats the state of BBR with the member names of `struct tuned_model`.
fn model(prefix: &str, words: &Values) -> String {
    let members = [
        ("mode", "mode"),
        ("min_rtt_us", "min_rtt_us"),
        ("is_policed", "lt_use_bw"),
        ("prior_ca_state", "prev_ca_state"),
        ("has_seen_rtt", "has_seen_rtt"),
    ];
    members.map(|(member, word)| format!("{prefix}.{member} {}\n", words.get(word).unwrap_or(&0))).concat()
}

/// Formats the inputs of the decisions at a call. `before` and `after` are the states of BBR.
fn input(before: &Values, arguments: &Values, after: &Values) -> String {
    let time = |name: &str| arguments.get(name).filter(|value| **value != NONE).map_or(0, |value| value / 1000);
    let get = |name: &str| arguments.get(name).copied().unwrap_or(0);
    let word = |name: &str| after[name];
    let clock = get("now") / 1_000_000;
    let rtt_us = arguments.get("rtt").filter(|value| **value != NONE).map_or(u64::from(u32::MAX), |value| value / 1000);
    let bw = if word("lt_use_bw") == 1 { word("lt_bw") } else { word("bw_s_0_v") };
    let members = [
        ("now_us", time("delivered_at")),
        ("clock", clock),
        ("departure_us", get("next_departure").saturating_sub(get("now")) / 1000),
        ("mss", 1448),
        ("srtt_us", time("srtt")),
        ("cwnd", get("cwnd")),
        ("cwnd_clamp", u64::from(u32::MAX)),
        ("inflight", get("inflight")),
        ("prior_inflight", get("prior_inflight")),
        ("acked", get("acked")),
        ("losses", get("losses")),
        ("rtt_us", rtt_us),
        ("delivered", get("delivered")),
        ("lost", get("lost")),
        ("ca_state", get("state")),
        ("pacing_shift", 10),
        ("pacing_rate", get("pacing_rate") / 8),
        ("max_pacing_rate", u64::MAX),
        ("random[0]", get("random_0")),
        ("random[1]", get("random_1")),
        ("bw", bw),
        ("max_bw", word("bw_s_0_v")),
        ("is_round_start", word("round_start")),
        ("is_pipe_full", word("full_bw_reached")),
        ("is_conserving", word("packet_conservation")),
        ("extra_acked", word("extra_acked_0").max(word("extra_acked_1"))),
        ("prior_cwnd", word("prior_cwnd")),
        ("is_min_rtt_fresh", u64::from(word("min_rtt_stamp") == clock)),
    ];
    model("before", before)
        + &model("after", after)
        + &members.map(|(name, value)| format!("{name} {value}\n")).concat()
}

struct Expected {
    place: String,
    call: String,
    before: Values,
    after: Values,
}

impl Expected {
    fn check(&self, values: &Values) {
        let Expected { place, before, after, .. } = self;
        let mode = |words: &Values| words.get("mode").copied().unwrap_or(0);
        for (name, value) in values {
            let expected = match name.as_str() {
                "pacing_rate" => after[name] / 8,
                // BBR keeps this time after it has left ProbeRTT.
                "probe_rtt_done_stamp" if mode(after) != PROBE_RTT => continue,
                // Only ProbeBW has phases.
                "cycle_idx" if mode(after) != 2 => continue,
                "is_due" => u64::from(mode(before) == PROBE_RTT && mode(after) != PROBE_RTT),
                // BBR enters ProbeRTT when the minimum RTT has expired, unless it has just restarted from idle.
                "is_expired" if mode(before) == PROBE_RTT || before["idle_restart"] == 1 => continue,
                "is_expired" => u64::from(mode(after) == PROBE_RTT),
                _ => after[name],
            };
            // BBR may leave ProbeRTT after that is due.
            if name == "is_due" && expected == 0 {
                continue;
            }
            assert_eq!(*value, expected, "{place}: {name}");
        }
    }
}

fn script(vectors: &str) -> (String, Vec<Expected>) {
    let (mut input_text, mut expected) = (String::new(), Vec::new());
    let (mut case, mut cc, mut arguments, mut before) = (String::new(), "", Values::new(), Values::new());
    for (line, number) in vectors.lines().zip(1..) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "case" => case = rest.to_owned(),
            "cc" => cc = rest,
            "params" => {
                input_text += &params(cc, rest);
                (arguments, before) = (Values::new(), Values::new());
            }
            _ => {
                let (words, results) = rest.split_once('>').expect("results after >");
                set(&mut arguments, words);
                let mut after = arguments.clone();
                set(&mut after, results);
                input_text += &input(&before, &arguments, &after);
                let command = match name {
                    "init" => "begin\n",
                    "ack" => "ack\n",
                    _ => "event\n",
                };
                input_text += command;
                let place = format!("line {number} of {case}");
                expected.push(Expected { place, call: name.to_owned(), before, after: after.clone() });
                (arguments, before) = (after.clone(), after);
            }
        }
    }
    (input_text, expected)
}

#[test]
fn c_decisions_match_the_vectors() {
    let (input, expected) = script(&vectors());
    let folder = tempfile::tempdir().unwrap();
    let input_file = folder.path().join("input");
    std::fs::write(&input_file, input).unwrap();
    let output = Command::new(driver(folder.path())).stdin(File::open(input_file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.lines().count(), expected.len());
    for (line, expected) in output.lines().zip(&expected) {
        let words: Vec<&str> = line.split(' ').collect();
        let values = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect();
        expected.check(&values);
    }
    let acks = expected.iter().filter(|call| call.call == "ack").count();
    assert!(acks > 2_000, "{acks}");
}
