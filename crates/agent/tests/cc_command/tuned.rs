//! `bbr_tuned` on the kernel of this machine follows its parameters.

use crate::engine::{bulk_flow, engine, run, with_engine};
use crate::stage::Stage;
use parquet::record::{Field, Row};
use serde_json::Value;

/// Time between probes, which differs from that without parameters, and the tolerance for a busy machine.
const INTERVAL_US: u64 = 400_000;
const TOLERANCE_US: u64 = 100_000;

fn flow() -> Value {
    bulk_flow("bbr_tuned", 6, 200_000, 0.0)
}

fn number(row: &Row, wanted: &str) -> u64 {
    match row.get_column_iter().find(|(name, _)| *name == wanted).expect("a column").1 {
        Field::ULong(value) => *value,
        Field::UInt(value) => u64::from(*value),
        Field::Long(value) => u64::try_from(*value).expect("it is not negative"),
        Field::Null => 0,
        other => panic!("{wanted}: {other:?}"),
    }
}

#[test]
fn the_kernel_probes_at_the_configured_interval_and_gain() {
    let Some(stage) = Stage::new() else { return };
    let Some(engine) = engine("kernel", "bbr_tuned on a path") else { return };
    let interval = format!("probe_interval_ms={}", INTERVAL_US / 1000);
    let settings = ["probe_gain=1.5", "probe_drain_gain=0.7", "probe_clock=time", &interval];
    let _loader = stage.load_with("bbr_tuned", &settings);
    let rows = run(&engine, &with_engine("kernel", &[flow()])).table("samples");
    let rates: Vec<(u64, f64)> = rows
        .iter()
        .map(|row| (number(row, "t_us"), number(row, "pacing_rate_bps") as f64))
        .filter(|(t_us, _)| *t_us > 2_000_000)
        .collect();
    let mut sorted: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    sorted.sort_by(f64::total_cmp);
    let cruise = sorted[sorted.len() / 2];
    let count = |gain: f64| rates.iter().filter(|(_, rate)| (rate / cruise - gain).abs() < 0.05).count();
    assert!(count(1.5) > 10 && count(0.7) > 10 && count(1.25) == 0, "{} {} {}", count(1.5), count(0.7), count(1.25));
    let probes = rates.windows(2).filter(|pair| pair[0].1 < 1.3 * cruise && pair[1].1 >= 1.3 * cruise);
    let starts: Vec<u64> = probes.map(|pair| pair[1].0).collect();
    let mut intervals: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    intervals.sort_unstable();
    let median = intervals[intervals.len() / 2];
    assert!(intervals.len() > 5 && median.abs_diff(INTERVAL_US) < TOLERANCE_US, "{intervals:?}");
}
