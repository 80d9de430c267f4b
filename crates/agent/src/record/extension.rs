//! Interface of extensions of the recorder, so that the recorder does not depend on `tune`.

use crate::flow::load_config::LoadConfig;
use crate::flow::off_cpu::OffCpu;
use crate::flow::program::Program;
use crate::flow::record_event::RecordEvent;
use crate::show::observable::Tuning;
use libbpf_rs::Link;
use std::sync::Arc;
use thalweg_store::Problem;

/// An extension of the recorder. By default, its methods change nothing.
pub trait Extension {
    /// Returns the additional configuration of the programs.
    fn load_config(&self) -> LoadConfig {
        LoadConfig::default()
    }

    /// Returns the names of the algorithms that may be chosen, in the order of the programs' numbers.
    fn arms(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Returns the first word of the first line of output.
    fn opening_word(&self) -> &'static str {
        "recording"
    }

    /// Returns the lines of output after the first one.
    fn opening_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether the extension sets algorithms.
    fn sets_algorithms(&self) -> bool {
        false
    }

    /// Returns the object that answers requests of clients about the choices.
    fn tuning(&self) -> Option<Arc<dyn Tuning>> {
        None
    }

    /// Called before the loaded programs are attached.
    ///
    /// # Errors
    /// If the recorder must stop.
    fn loaded(&mut self, _program: &Program) -> Result<(), Problem> {
        Ok(())
    }

    /// Called when the programs are attached by a link, and again if [`holds`](Extension::holds) returns false.
    ///
    /// # Errors
    /// If the extension cannot use the link.
    fn attached(&mut self, _link: &Link) -> Result<(), Problem> {
        Ok(())
    }

    /// Called before the link is dropped, except when recording ends; may be called without a link.
    fn detached(&mut self) {}

    /// Returns whether the process that holds the link for the extension, if any, still runs.
    fn holds(&mut self) -> bool {
        true
    }

    /// Reads the settings again and applies those that can change at run time. Returns lines for the log.
    ///
    /// # Errors
    /// If the new settings cannot be read, or the kernel rejects one; the earlier ones stay as far as possible.
    fn reload(&mut self) -> Result<Vec<String>, Problem> {
        Ok(Vec::new())
    }

    /// Called after the first lines of output.
    fn opened(&mut self) {}

    /// Receives the final event of a connection: its close, or its last sample if the kernel does not report the close.
    fn take(&mut self, _event: &RecordEvent, _off_cpu: &OffCpu) {}

    /// Called after events were fetched.
    fn tick(&mut self, _off_cpu: &OffCpu) {}

    /// Called when recording ends, while the programs are still attached.
    ///
    /// # Errors
    /// If state that a later run needs could not be saved.
    fn end(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

/// No extension: `record`.
pub struct RecordOnly;

impl Extension for RecordOnly {}
