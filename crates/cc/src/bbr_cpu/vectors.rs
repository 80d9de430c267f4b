//! Verifies that the rules match the vectors that the rules in C are tested with.

use super::rule::Input;
use super::{Paper, Rule, Schedule};
use crate::bbr::Bbr;
use crate::bbr3::Bbr3;
use crate::wrapped::Wrapped;
use serde_json::{Map, Value};

fn set(input: &mut Input, name: &str, value: u64) {
    match name {
        "now_us" => input.now_us = value,
        "departure_us" => input.departure_us = value,
        "bytes_sent" => input.bytes_sent = value,
        "inflight_bytes" => input.inflight_bytes = value,
        "mss" => input.mss = value,
        "srtt_us" => input.srtt_us = value,
        "rtt_us" => input.rtt_us = value,
        "snd_cwnd" => input.snd_cwnd = value,
        "prior_cwnd" => input.prior_cwnd = value,
        "acked" => input.acked = value,
        "inflight" => input.inflight = value,
        "prior_inflight" => input.prior_inflight = value,
        "delivered" => input.delivered = value,
        "lost" => input.lost = value,
        "ca_state" => input.ca_state = value,
        "is_held_back" => input.is_held_back = value != 0,
        "rate_app_limited" => input.rate_app_limited = value != 0,
        "pacing_rate_bytes_per_s" => input.pacing_rate_bytes_per_s = value,
        "max_pacing_rate_bytes_per_s" => input.max_pacing_rate_bytes_per_s = value,
        "bw" => input.bw = value,
        "min_rtt_us" => input.min_rtt_us = value,
        "mode" => input.mode = value as u8,
        "full_bw_count" => input.full_bw_count = value as u32,
        "inflight_bound" => input.inflight_bound = (value > 0).then_some(value),
        "unbounded_cwnd" => input.unbounded_cwnd = (value > 0).then_some(value),
        _ => panic!("no member {name}"),
    }
}

fn set_all(input: &mut Input, members: &Map<String, Value>) {
    for (name, value) in members {
        set(input, name, value.as_u64().expect("a whole number"));
    }
}

#[test]
fn the_rules_match_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../tests/vectors/bbr_cpu.json")).expect("JSON");
    for case in vectors["cases"].as_array().expect("cases") {
        let is_3 = case.get("version").is_some_and(|version| version == 3);
        let mut rule = match case["rule"].as_str() {
            Some("paper") if is_3 => Rule::Paper(Paper::new(Bbr3::STARTUP_GAIN, Bbr3::EXPECTED_PERCENT)),
            Some("paper") => Rule::Paper(Paper::new(Bbr::STARTUP_GAIN, Bbr::EXPECTED_PERCENT)),
            Some("schedule") if is_3 => Rule::Schedule(Schedule::new(Bbr3::MISSED_RATIO, Bbr3::MISSED_US)),
            Some("schedule") => Rule::Schedule(Schedule::new(Bbr::MISSED_RATIO, Bbr::MISSED_US)),
            other => panic!("no rule {other:?}"),
        };
        let mut input = Input::default();
        set_all(&mut input, vectors["base"].as_object().expect("base"));
        for (number, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let place = format!("{}, step {}", case["name"], number + 1);
            if let Some(sample) = step.get("sample") {
                let value = |name: &str| sample[name].as_u64().expect("a number");
                let interval_us =
                    rule.interval_us(input.now_us, input.min_rtt_us, value("delivered"), value("interval_us"));
                assert_eq!(interval_us, value("expected_us"), "{place}");
                continue;
            }
            set_all(&mut input, step["set"].as_object().expect("what is set"));
            let output = rule.step(&input);
            let expected = |name: &str| step["out"].get(name).map_or(0, |value| value.as_u64().expect("a number"));
            let results = [
                ("pacing_rate_bytes_per_s", output.pacing_rate_bytes_per_s.unwrap_or(0)),
                ("pacing_gain", output.pacing_gain.map_or(0, u64::from)),
                ("snd_cwnd", output.snd_cwnd.unwrap_or(0)),
                ("is_startup_over", u64::from(output.is_startup_over)),
                ("full_bw_count", output.full_bw_count.map_or(0, u64::from)),
                ("is_min_rtt_fresh", u64::from(output.is_min_rtt_fresh)),
                ("boosted", u64::from(output.is_boosted)),
            ];
            for (name, value) in results {
                assert_eq!(value, expected(name), "{place}: {name}");
            }
        }
    }
}
