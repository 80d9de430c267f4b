//! Rows of the table `packets`: the outcome of each packet that was offered to a link.
//!
//! A row is emitted when the packet leaves the queue or is dropped. Packets still in the queue, and acknowledgements
//! that ACK thinning has dropped, get their row at the end of the experiment, with the fate `queued`. A packet that the
//! link duplicates has one row, with the outcome of original or copy that was known first. A packet merged by a router
//! counts as one.

use crate::packet::Packet;
use std::collections::BTreeMap;
use thalweg_link::{DropCause, Fate, Link};
use thalweg_plan::plan::Experiment;
use thalweg_trace::{PacketRow, Sink};
use thalweg_units::{Bytes, Time};

/// The recorded packets of one direction.
#[derive(Debug)]
pub(crate) struct Recording {
    experiment: u64,
    repetition: u64,
    link: &'static str,
    offered: u64,
    /// Packets whose outcome is still unknown, by number.
    pending: BTreeMap<u64, PacketRow>,
}

impl Recording {
    /// Creates the recording of a direction, if the experiment requests it.
    pub(crate) fn new(experiment: &Experiment, name: &'static str, link: &mut Link<Box<Packet>>) -> Option<Recording> {
        if !experiment.engine.record {
            return None;
        }
        link.record();
        let (number, repetition) = (experiment.experiment.into(), experiment.repetition.into());
        Some(Recording { experiment: number, repetition, link: name, offered: 0, pending: BTreeMap::new() })
    }

    /// Records a packet that was offered to the link.
    pub(crate) fn offer(&mut self, now: Time, size: Bytes, link: &mut Link<Box<Packet>>) {
        let row = PacketRow {
            experiment: self.experiment,
            repetition: self.repetition,
            link: self.link,
            t_us: now.as_micros(),
            number: self.offered,
            fate: "queued",
            size_bytes: size.0,
            backlog_bytes: link.stats(now).backlog_bytes.0,
            cause: None,
            sojourn_us: None,
            marked: None,
        };
        self.pending.insert(self.offered, row);
        self.offered += 1;
    }

    /// Emits the rows of packets whose outcome is now known.
    pub(crate) fn emit(&mut self, link: &mut Link<Box<Packet>>, sink: &mut dyn Sink) {
        for (number, fate) in link.outcomes() {
            let Some(mut row) = self.pending.remove(&number) else { continue };
            match fate {
                Fate::Left { sojourn, is_marked } => {
                    row.sojourn_us = Some(sojourn.as_micros());
                    row.marked = Some(is_marked);
                }
                Fate::Dropped(cause) => {
                    row.cause = Some(cause.name());
                    row.fate = match cause {
                        DropCause::Random => "lost",
                        DropCause::Policed => "policed",
                        DropCause::Full | DropCause::Early => "dropped",
                    };
                }
            }
            sink.packet(row);
        }
    }

    /// Emits the remaining rows at the end of the experiment.
    pub(crate) fn finish(mut self, link: &mut Link<Box<Packet>>, sink: &mut dyn Sink) {
        self.emit(link, sink);
        self.pending.into_values().for_each(|row| sink.packet(row));
    }
}
