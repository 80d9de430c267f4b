//! The tables of a running experiment.

use crate::atomic::Pending;
use crate::error::Error;
use crate::id::Id;
use crate::layout::{recorded_folder, recorded_paths, table_path};
use crate::publish::publish;
use crate::table_file::TableFile;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use thalweg_plan::plan::SweepValue;
use thalweg_trace::{FlowRow, PacketRow, QueueRow, Row, SampleRow, Sink, StateRow};

/// Writes the rows of one experiment as they arrive. If dropped before it is finished, it leaves no files.
///
/// A sink cannot return errors. The first write error is stored, later rows are dropped, and [`Health`] reports that
/// the experiment should stop.
#[derive(Debug)]
pub struct Tables<'a> {
    place: Place<'a>,
    samples: TableFile<SampleRow>,
    state: TableFile<StateRow>,
    queue: TableFile<QueueRow>,
    flows: TableFile<FlowRow>,
    packets: Option<TableFile<PacketRow>>,
    capture: Option<Pending>,
}

/// Reports whether the tables of an experiment can still be written. It can be queried while rows are being added.
#[derive(Clone, Debug, Default)]
pub struct Health(Rc<RefCell<Option<Error>>>);

impl Health {
    /// Whether a row could not be written.
    pub fn is_lost(&self) -> bool {
        self.0.borrow().is_some()
    }

    fn check(&self) -> Result<(), Error> {
        self.0.take().map_or(Ok(()), Err)
    }
}

impl<'a> Tables<'a> {
    /// Creates the files. `flows` has a column for every key of the sweep; `flows` and `samples` lack the `unused`
    /// columns.
    pub(crate) fn create(
        directory: &'a Path,
        id: &Id,
        sweep: &BTreeMap<String, SweepValue>,
        unused: &[&str],
    ) -> Result<Tables<'a>, Error> {
        let place = Place { directory, id: id.clone(), health: Health::default() };
        let none = BTreeMap::new();
        Ok(Tables {
            samples: place.create(&none, unused)?,
            state: place.create(&none, &[])?,
            queue: place.create(&none, &[])?,
            flows: place.create(sweep, unused)?,
            packets: None,
            capture: None,
            place,
        })
    }

    /// Returns a handle that reports whether rows can be written.
    pub fn health(&self) -> Health {
        self.place.health.clone()
    }

    /// Returns the number of unwritten rows in all tables.
    pub fn rows_in_memory(&self) -> usize {
        let Tables { samples, state, queue, flows, packets, .. } = self;
        let packets = packets.as_ref().map_or(0, TableFile::rows_in_memory);
        packets + samples.rows_in_memory() + state.rows_in_memory() + queue.rows_in_memory() + flows.rows_in_memory()
    }

    /// Creates the table of the experiment's packets. Without it, their rows are dropped.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn begin_packets(&mut self) -> Result<(), Error> {
        let [table, _] = recorded_paths(self.place.directory, &self.place.id);
        let error = |path: &Path, source| Error::io(self.place.directory, path, source);
        let folder = recorded_folder(self.place.directory);
        fs::create_dir_all(&folder).map_err(|source| error(&folder, source))?;
        self.packets = Some(TableFile::create(&table, &BTreeMap::new(), &[]).map_err(|source| error(&table, source))?);
        Ok(())
    }

    /// Creates the capture of the experiment's packets; returns its temporary path. The file is renamed together with
    /// the tables. Must be called after [`Tables::begin_packets`], which creates the folder.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn begin_capture(&mut self) -> Result<&Path, Error> {
        let [_, capture] = recorded_paths(self.place.directory, &self.place.id);
        let error = |path: &Path, source| Error::io(self.place.directory, path, source);
        let pending = Pending::create(&capture).map_err(|source| error(&capture, source))?;
        Ok(self.capture.insert(pending).path())
    }

    /// Completes the experiment. After an error, its tables and its capture do not exist.
    ///
    /// # Errors
    /// If a file could not be written, now or when a row was added.
    pub fn commit(self) -> Result<(), Error> {
        let Tables { place, samples, state, queue, flows, packets, capture } = self;
        place.health.check()?;
        let packets = packets.map(|packets| place.finish(packets)).transpose()?;
        if let Some(capture) = &capture {
            let path = capture.target();
            capture.sync().map_err(|source| Error::io(place.directory, path, source))?;
        }
        // The order is that of TABLES.
        let tables = [place.finish(samples)?, place.finish(state)?, place.finish(queue)?, place.finish(flows)?];
        publish(place.directory, &place.id, packets.into_iter().chain(capture).chain(tables))
    }

    /// Removes the files of a failed experiment.
    ///
    /// # Errors
    /// If a row could not be written, which may have caused the failure.
    pub fn discard(self) -> Result<(), Error> {
        self.place.health.check()
    }
}

impl Sink for Tables<'_> {
    fn flow(&mut self, row: FlowRow) {
        self.place.record(&mut self.flows, row);
    }
    fn sample(&mut self, row: SampleRow) {
        self.place.record(&mut self.samples, row);
    }
    fn state(&mut self, row: StateRow) {
        self.place.record(&mut self.state, row);
    }
    fn queue(&mut self, row: QueueRow) {
        self.place.record(&mut self.queue, row);
    }
    fn packet(&mut self, row: PacketRow) {
        if let Some(file) = &mut self.packets {
            self.place.record(file, row);
        }
    }
}

/// Location of the files, and the first write error.
#[derive(Debug)]
struct Place<'a> {
    directory: &'a Path,
    id: Id,
    health: Health,
}

impl Place<'_> {
    fn create<R: Row>(
        &self,
        constants: &BTreeMap<String, SweepValue>,
        without: &[&str],
    ) -> Result<TableFile<R>, Error> {
        let path = table_path(self.directory, R::TABLE.name, &self.id);
        TableFile::create(&path, constants, without).map_err(|source| self.error::<R>(source))
    }

    fn record<R: Row>(&self, file: &mut TableFile<R>, row: R) {
        if self.health.is_lost() {
            return;
        }
        if let Err(source) = file.push(row) {
            self.health.0.replace(Some(self.error::<R>(source)));
        }
    }

    fn finish<R: Row>(&self, file: TableFile<R>) -> Result<Pending, Error> {
        file.finish().map_err(|source| self.error::<R>(source))
    }

    fn error<R: Row>(&self, source: io::Error) -> Error {
        let directory = self.directory;
        Error::io(directory, &table_path(directory, R::TABLE.name, &self.id), source)
    }
}
