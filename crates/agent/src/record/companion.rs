//! What else may be done with the recorder's programs, and with what they tell: `tune` chooses algorithms.

use crate::flow::event::Event;
use crate::flow::load_config::LoadConfig;
use crate::flow::off_cpu::Away;
use crate::flow::program::Program;
use crate::problem::Problem;
use crate::show::observable::Tuning;
use libbpf_rs::Link;
use std::sync::Arc;

/// Who works along with the recorder, in its thread.
pub trait Companion {
    /// Returns what is set in the programs before they are loaded.
    fn load_config(&self) -> LoadConfig;

    /// The names of the algorithms that may be chosen, as the programs number them.
    fn names(&self) -> Vec<Arc<str>>;

    /// What the first line of output says instead of "recording".
    fn opening_word(&self) -> &'static str;

    /// The lines of output after the first one: what it does, and with what.
    fn opening_lines(&self) -> Vec<String>;

    /// Whether it sets algorithms, so that nobody else may.
    fn sets(&self) -> bool;

    /// The part of it that others may ask.
    fn tuning(&self) -> Option<Arc<dyn Tuning>>;

    /// The programs are in the kernel, and see nothing yet.
    ///
    /// # Errors
    /// If it cannot go on.
    fn loaded(&mut self, program: &Program) -> Result<(), Problem>;

    /// The programs are at work.
    ///
    /// # Errors
    /// If it cannot go on.
    fn attached(&mut self, link: &Link) -> Result<(), Problem>;

    /// The programs are no longer at work, or will be by another link.
    fn detached(&mut self);

    /// Whether all that it has made of the link is still there.
    fn holds(&mut self) -> bool;

    /// Reads the settings again, and applies those that can be applied at work. Returns lines for the log.
    ///
    /// # Errors
    /// If the new settings cannot be read: the earlier ones stay.
    fn reload(&mut self) -> Result<Vec<String>, Problem>;

    /// Whoever waits for it has been told that all is at work.
    fn opened(&mut self);

    /// A connection has closed, or a part of it is over. Of those that are gone, what was seen of them last.
    fn take(&mut self, event: &Event, away: &Away);

    /// A few times a second.
    fn tick(&mut self, away: &Away);

    /// Recording ends; the programs are still at work, and end whatever this gives.
    ///
    /// # Errors
    /// If something is lost that the next one would need.
    fn end(&mut self) -> Result<(), Problem>;
}
