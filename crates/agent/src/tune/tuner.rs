//! Connects the decision engine with the BPF program, as an extension of the recorder.

use super::chooser::Chooser;
use super::kernel::{Choice, TuneKernel};
use super::maps::Maps;
use super::outcome::Outcomes;
use super::wire::{self, Slots};
use crate::flow::clock::jiffy_ns;
use crate::flow::clock::monotonic_us;
use crate::flow::load_config::LoadConfig;
use crate::flow::measures;
use crate::flow::off_cpu::OffCpu;
use crate::flow::program::Program;
use crate::flow::reason::Reason;
use crate::flow::record_event::RecordEvent;
use crate::record::Extension;
use crate::show::observable::Tuning;
use crate::watchdog::Watchdog;
use libbpf_rs::Link;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use thalweg_store::Problem;

/// Period over which the off-CPU share of the host is measured, in microseconds.
const AWAY_US: u64 = 10_000_000;

/// The decision engine, connected with the BPF program.
pub struct Tuner {
    choice: Choice,
    chooser: Chooser,
    outcomes: Outcomes,
    maps: Option<Maps>,
    socket: PathBuf,
    watchdog: Option<Watchdog>,
    is_open: bool,
    /// Names of algorithms by their encoding in events.
    names: HashMap<[u64; 2], Arc<str>>,
}

impl Tuner {
    /// Creates a tuner that has not started.
    pub fn new(choice: Choice, chooser: Chooser, socket: PathBuf) -> Tuner {
        let outcomes = Outcomes::of(&choice, jiffy_ns());
        Tuner { choice, chooser, outcomes, maps: None, socket, watchdog: None, is_open: false, names: HashMap::new() }
    }
}

impl Extension for Tuner {
    fn load_config(&self) -> LoadConfig {
        let slots = Slots::of(&self.choice.arms);
        LoadConfig {
            constants: vec![(".rodata.tune", wire::settings(Some((&self.choice, &slots))))],
            entries: vec![("rows", wire::ROWS), ("clients", wire::CLIENTS)],
        }
    }

    fn arms(&self) -> Vec<Arc<str>> {
        let arms = &self.choice.arms;
        Slots::of(arms).iter().map(|arm| Arc::from(arms.arm(arm).name.as_str())).collect()
    }

    fn opening_word(&self) -> &'static str {
        if self.choice.is_dry { "tuning (dry run: nothing is set) and recording" } else { "tuning and recording" }
    }

    fn opening_lines(&self) -> Vec<String> {
        self.chooser.opening_lines()
    }

    fn sets_algorithms(&self) -> bool {
        !self.choice.is_dry
    }

    fn tuning(&self) -> Option<Arc<dyn Tuning>> {
        Some(self.chooser.tuning())
    }

    fn loaded(&mut self, program: &Program) -> Result<(), Problem> {
        let maps = self.maps.insert(Maps::of(program, &self.choice)?);
        self.chooser.begin(maps)?;
        maps.heartbeat();
        Ok(())
    }

    fn attached(&mut self, link: &Link) -> Result<(), Problem> {
        if !self.choice.grace.is_zero() {
            self.watchdog = Some(Watchdog::start(link, self.choice.grace, &self.socket)?);
        }
        Ok(())
    }

    fn detached(&mut self) {
        // Dropped before this process releases the programs.
        self.watchdog = None;
    }

    fn holds(&mut self) -> bool {
        self.choice.grace.is_zero() || self.watchdog.as_mut().is_some_and(Watchdog::is_alive)
    }

    fn reload(&mut self) -> Result<Vec<String>, Problem> {
        self.maps.as_mut().map_or(Ok(Vec::new()), |maps| self.chooser.reload(maps))
    }

    fn opened(&mut self) {
        self.is_open = true;
    }

    fn take(&mut self, event: &RecordEvent, off_cpu: &OffCpu) {
        if self.maps.is_none() {
            return;
        }
        let peer = measures::address(event.family, event.remote_address);
        if event.reason() != Reason::Undecided {
            let cc = self.names.entry(event.cc).or_insert_with(|| Arc::from(measures::name(event.cc)));
            self.chooser.count(event.netns, peer, event.reason(), cc);
        }
        if let Some((netns, outcome)) = self.outcomes.take(event, off_cpu) {
            self.chooser.observe(netns, &outcome);
        }
    }

    fn tick(&mut self, off_cpu: &OffCpu) {
        let Some(maps) = &mut self.maps else { return };
        maps.heartbeat();
        // The chooser logs only after the first lines of output.
        if !self.is_open {
            return;
        }
        let now_us = monotonic_us();
        self.chooser.tick(off_cpu.share(now_us.saturating_sub(AWAY_US), now_us), maps);
    }

    fn end(&mut self) -> Result<(), Problem> {
        self.detached();
        self.chooser.end()
    }
}
