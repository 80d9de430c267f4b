//! Tests of the catalog of controllers, and of the errors for invalid names and parameters.

use std::collections::BTreeMap;
use thalweg_cc::{BuildError, CATALOG, Window, build};
use thalweg_units::{Packets, Rate};

fn error(name: &str, params: &[(&str, f64)]) -> BuildError {
    let params = params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    build(name, &params).expect_err("it must be refused")
}

#[test]
fn every_catalog_entry_can_be_built_with_its_defaults_and_keeps_its_name() {
    for entry in CATALOG {
        let defaults = entry.params.iter().map(|param| (param.name.to_owned(), param.default)).collect();
        for params in [BTreeMap::new(), defaults] {
            assert_eq!(build(entry.name, &params).expect("defaults are allowed").name(), entry.name);
        }
    }
}

#[test]
fn an_unknown_controller_is_rejected_with_the_available_ones() {
    assert_eq!(
        error("swift", &[]).to_string(),
        "cc: found \"swift\", expected one of bbr, bbr3, bbr_auto, bbr_cpu, bic, cubic, dctcp, htcp, illinois, prague, \
         reno, vegas"
    );
}

#[test]
fn an_unknown_parameter_is_rejected_with_the_available_ones() {
    let message = error("bbr", &[("gain", 1.1)]).to_string();
    let start = r#"cc_params.gain: found a parameter "gain" of bbr, expected one of probe_gain, "#;
    assert!(message.starts_with(start) && message.contains(", cwnd_gain, "), "{message}");
    assert_eq!(error("reno", &[("beta", 0.5)]).expected(), "one of beta_ecn");
}

#[test]
fn a_parameter_out_of_range_is_rejected_with_its_range() {
    assert_eq!(
        error("bbr", &[("pacing_gain", 2.5)]).to_string(),
        "cc_params.pacing_gain: found 2.5, expected a number from 1 to 1.9"
    );
    assert_eq!(
        error("cubic", &[("hystart", 0.5)]).to_string(),
        "cc_params.hystart: found 0.5, expected a whole number from 0 to 1"
    );
    assert!(matches!(error("bbr", &[("pacing_gain", f64::NAN)]), BuildError::OutOfRange { .. }));
}

#[test]
fn send_buffers_hold_two_windows_and_with_bbr_three() {
    for (name, factor) in [("reno", 2), ("cubic", 2), ("bbr", 3)] {
        assert_eq!(build(name, &BTreeMap::new()).expect("it is in the catalog").sndbuf_factor(), factor);
    }
}

#[test]
fn bbr_sends_single_packets_below_1_2_mbps_and_pairs_from_there_on() {
    let bbr = build("bbr", &BTreeMap::new()).expect("it is in the catalog");
    let burst = |bps| {
        let window = Window { cwnd: Packets(10), ssthresh: Packets::MAX, pacing_rate: Rate(bps), is_held_back: false };
        bbr.min_burst(&window)
    };
    assert_eq!((burst(1_199_999), burst(1_200_000)), (Packets(1), Packets(2)));
}
