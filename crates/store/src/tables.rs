//! The tables of one experiment, kept in memory until it has ended.

use crate::column::Rows;
use crate::encode::encode;
use std::collections::BTreeMap;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::{FlowRow, QueueRow, Row, SampleRow, Sink, StateRow};

/// Takes the rows of one experiment.
#[derive(Debug)]
pub struct Tables {
    flows: Rows,
    samples: Rows,
    state: Rows,
    queue: Rows,
}

/// A file of a run directory that is still to be written: the name of its table, and its bytes.
pub(crate) type TableFile = (&'static str, Vec<u8>);

/// The tables in the order in which their files are renamed into place: `flows` last, because it marks an experiment
/// as complete.
pub(crate) const TABLES: [&str; 4] =
    [SampleRow::TABLE.name, StateRow::TABLE.name, QueueRow::TABLE.name, FlowRow::TABLE.name];

impl Tables {
    /// Without rows.
    pub fn new() -> Tables {
        Tables {
            flows: Rows::of::<FlowRow>(),
            samples: Rows::of::<SampleRow>(),
            state: Rows::of::<StateRow>(),
            queue: Rows::of::<QueueRow>(),
        }
    }

    /// The files, in the order of [`TABLES`]. `flows` gets a column for every key of the sweep.
    pub(crate) fn into_files(mut self, sweep: &BTreeMap<String, SweepValue>) -> [TableFile; 4] {
        for (key, value) in sweep {
            self.flows.append_sweep_column(key, value);
        }
        let files = [&self.samples, &self.state, &self.queue, &self.flows];
        std::array::from_fn(|i| (TABLES[i], encode(files[i])))
    }
}

impl Default for Tables {
    fn default() -> Tables {
        Tables::new()
    }
}

impl Sink for Tables {
    fn flow(&mut self, row: FlowRow) {
        self.flows.push(&row);
    }
    fn sample(&mut self, row: SampleRow) {
        self.samples.push(&row);
    }
    fn state(&mut self, row: StateRow) {
        self.state.push(&row);
    }
    fn queue(&mut self, row: QueueRow) {
        self.queue.push(&row);
    }
}
