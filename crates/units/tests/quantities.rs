//! Tests of the quantities. The vectors of parsed texts are shared with the Python tests.

use serde_json::Value;
use thalweg_units::{Bytes, ParseError, Probability, Rate, Span};

fn read(kind: &str, text: &str) -> Result<u64, ParseError> {
    match kind {
        "rate" => text.parse::<Rate>().map(|rate| rate.0),
        "size" => text.parse::<Bytes>().map(|size| size.0),
        "time" => text.parse::<Span>().map(|span| span.0),
        other => panic!("the vectors have a kind that no test reads: {other}"),
    }
}

fn vectors() -> Vec<(String, String, Option<u64>)> {
    let file = include_str!("../../../tests/vectors/quantities.json");
    let rows: Vec<Value> = serde_json::from_str(file).expect("the vectors are JSON");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    rows.iter().map(|row| (text(&row["kind"]), text(&row["text"]), row["value"].as_u64())).collect()
}

#[test]
fn parsing_matches_the_vectors() {
    for (kind, text, value) in vectors() {
        assert_eq!(read(&kind, &text).ok(), value, "{kind} {text:?}");
    }
}

#[test]
fn formatted_values_parse_back_to_the_same_value() {
    for value in [0, 1, 999, 1_000, 1_500, 12_345_678, 40_000_000, 1_000_000_001, u64::MAX] {
        assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
        assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        assert_eq!(Span(value).to_string().parse(), Ok(Span(value)));
    }
}

#[test]
fn an_error_names_the_found_and_the_expected_text() {
    let error = "40".parse::<Rate>().expect_err("a bare number has no unit");
    assert_eq!(error.to_string(), r#"found "40", expected a rate with its unit, such as "40Mbps" or "1Gbps""#);
}

#[test]
fn transmission_time_and_bytes_are_inverse_to_each_other() {
    assert_eq!(Rate::from_mbps(100).time_to_send(Bytes(1500)), Span::from_micros(120));
    assert_eq!(Rate(3).time_to_send(Bytes(1)), Span(2_666_666_667));
    assert_eq!(Rate::ZERO.time_to_send(Bytes(1)), Span::MAX);
    assert_eq!(Rate::from_mbps(40).bytes_in(Span::from_millis(45)), Bytes(225_000));
    assert_eq!(Rate::of(Bytes(225_000), Span::from_millis(45)), Rate::from_mbps(40));
}

#[test]
fn probabilities_include_zero_and_one() {
    assert!(!Probability::NEVER.sample(0));
    assert!(Probability::ALWAYS.sample(u64::MAX));
    let half = Probability::new(0.5).expect("within 0 to 1");
    assert!(half.sample((1 << 63) - 1) && !half.sample(1 << 63));
    assert_eq!(Probability::new(1.01), None);
    assert_eq!(Probability::new(f64::NAN), None);
}
