//! Tests `bbr3` on a path with random loss.

use crate::engine::{bulk_flow, engine, run, with_engine};
use crate::stage::Stage;
use parquet::record::{Field, Row};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Minimum ratio to the goodput of CUBIC, with a margin for busy machines.
const FACTOR: f64 = 1.5;

/// Returns a flow on a path that loses 1 % of the packets.
fn flow(cc: &str) -> Value {
    bulk_flow(cc, 4, 100_000, 0.01)
}

fn column<'a>(row: &'a Row, wanted: &str) -> &'a Field {
    row.get_column_iter().find(|(name, _)| *name == wanted).expect("a column").1
}

#[test]
fn bbr3_beats_cubic_under_random_loss() {
    let Some(stage) = Stage::new() else { return };
    let Some(engine) = engine("kernel", "bbr3 on a lossy path") else { return };
    let _loader = stage.load("bbr3");
    for seed in [1, 2] {
        let mut experiments = [flow("cubic"), flow("bbr3")];
        for (number, experiment) in experiments.iter_mut().enumerate() {
            experiment["seed"] = json!(seed);
            experiment["experiment"] = json!(number);
        }
        let rows = run(&engine, &with_engine("kernel", &experiments)).table("flows");
        let acked: BTreeMap<String, f64> = rows
            .iter()
            .map(|row| match (column(row, "cc"), column(row, "acked_bytes")) {
                (Field::Str(cc), Field::ULong(acked)) => (cc.clone(), *acked as f64),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(acked["bbr3"] > FACTOR * acked["cubic"], "acknowledged bytes: {acked:?}");
    }
}
