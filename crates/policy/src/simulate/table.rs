//! The file of outcomes of transfers.

use super::population::Population;
use serde::Deserialize;
use std::collections::BTreeMap;
use thalweg_units::{Bytes, Packets, Span};

/// Supported version of the file.
const FORMAT: u32 = 1;

/// The outcome of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Completion time.
    pub fct: Span,
    /// Data segments sent, including retransmissions.
    pub segments: Packets,
    /// Number of retransmissions.
    pub retransmits: Packets,
    /// Smallest round-trip time.
    pub rtt_min: Span,
    /// 95th percentile of the round-trip times.
    pub rtt_p95: Span,
}

/// Outcomes of transfers by kind of path, CPU state, arm and size.
#[derive(Clone, Debug)]
pub struct Table {
    cells: Vec<Vec<Row>>,
    arms: usize,
    sizes: usize,
    /// See [`Table::neighbour`]; by kind and arm.
    neighbours: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct File {
    format: u32,
    kinds: BTreeMap<String, KindCells>,
}

#[derive(Deserialize)]
struct KindCells {
    neighbour: BTreeMap<String, f64>,
    cells: Vec<CellRows>,
}

#[derive(Deserialize)]
struct CellRows {
    cpu: String,
    arm: String,
    bytes: Bytes,
    rows: Vec<[u64; 5]>,
}

impl Table {
    /// Parses the file, and checks that it has every entry that the population requires.
    ///
    /// # Errors
    /// If the text is not such a table; the error is a sentence.
    pub fn parse(text: &str, population: &Population) -> Result<Table, String> {
        let file: File = serde_json::from_str(text).map_err(|error| format!("outcomes: {error}"))?;
        if file.format != FORMAT {
            return Err(format!("outcomes: format {}, expected {FORMAT}", file.format));
        }
        let mut table = Table {
            cells: Vec::new(),
            arms: population.arms.len(),
            sizes: population.sizes.len(),
            neighbours: Vec::new(),
        };
        for kind in &population.kinds {
            let lacks = |what: String| format!("outcomes: `{}` lacks {what}; run tools/policy_outcomes.py", kind.name);
            let outcomes = file.kinds.get(&kind.name).ok_or_else(|| lacks("everything".to_owned()))?;
            for cpu in ["whole", "shared"] {
                for arm in &population.arms {
                    for size in &population.sizes {
                        let is_it = |cell: &&CellRows| cell.cpu == cpu && cell.arm == *arm && cell.bytes == size.bytes;
                        let cell = outcomes.cells.iter().find(is_it).filter(|cell| !cell.rows.is_empty());
                        let cell = cell.ok_or_else(|| lacks(format!("{} B with {arm}, CPU {cpu}", size.bytes.0)))?;
                        table.cells.push(cell.rows.iter().map(row).collect());
                    }
                }
            }
            let beside = |arm: &String| {
                outcomes.neighbour.get(arm).copied().ok_or_else(|| lacks(format!("a neighbour of {arm}")))
            };
            table.neighbours.push(population.arms.iter().map(beside).collect::<Result<_, _>>()?);
        }
        Ok(table)
    }

    /// Returns the transfers of a cell; never empty.
    pub fn rows(&self, kind: usize, is_cpu_shared: bool, arm: usize, size: usize) -> &[Row] {
        &self.cells[((kind * 2 + usize::from(is_cpu_shared)) * self.arms + arm) * self.sizes + size]
    }

    /// Returns the throughput of a CUBIC connection that competes with a connection of an arm, relative to that next to
    /// CUBIC.
    pub fn neighbour(&self, kind: usize, arm: usize) -> f64 {
        self.neighbours[kind][arm]
    }
}

fn row(&[fct_us, segments, retransmits, rtt_min_us, rtt_p95_us]: &[u64; 5]) -> Row {
    Row {
        fct: Span::from_micros(fct_us),
        segments: Packets(segments),
        retransmits: Packets(retransmits),
        rtt_min: Span::from_micros(rtt_min_us),
        rtt_p95: Span::from_micros(rtt_p95_us),
    }
}
