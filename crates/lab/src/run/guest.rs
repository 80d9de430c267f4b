//! A sender that runs in a guest, which has a separate clock and possibly a restricted CPU share.

use super::Failure;
use super::host_processes::{HostProcesses, unexpected};
use crate::clock::monotonic_ns;
use crate::error::Error;
use crate::protocol::{Command, HostEvent, ProgramRun};
use crate::stage::HostReport;
use crate::vm::contention::{self, Contention};
use crate::vm::{CLOCK_QUESTIONS, ClockReading, Comparison, Machine};
use std::collections::BTreeMap;
use std::time::Duration;
use thalweg_plan::plan::Host;

const PATIENCE: Duration = Duration::from_secs(20);

/// Maximum acceptable drift of a guest's clock relative to this machine's, in parts per million.
const WORST_DRIFT_PPM: f64 = 2000.0;

/// A guest that runs a sender.
#[derive(Debug)]
pub struct Guest {
    /// Index of the host that it runs.
    number: usize,
    machine: Machine,
    host: Host,
    /// Name of the host; `None` if there are no other guests.
    name: Option<String>,
    /// Comparison of the clocks before the start.
    clock: Comparison,
    /// Drift of the guest's clock; zero before [`Guest::leave`].
    drift_ppm: f64,
    boot_s: f64,
    contention: Option<Contention>,
    shares: BTreeMap<String, f64>,
}

impl Guest {
    /// Compares the guest's clock with this machine's. The guest's host must be prepared.
    ///
    /// # Errors
    /// If the guest does not answer, a host fails, or the user requested a stop.
    pub fn meet(
        processes: &mut HostProcesses<'_>,
        number: usize,
        machine: Machine,
        host: Host,
        name: Option<String>,
    ) -> Result<Guest, Failure> {
        let boot_s = machine.age_s();
        let clock = compare(processes, number)?;
        Ok(Guest {
            number,
            machine,
            host,
            name,
            clock,
            drift_ppm: 0.0,
            boot_s,
            contention: None,
            shares: BTreeMap::new(),
        })
    }

    /// Returns whether the guest is restricted to a share of a processor.
    pub fn is_on_a_share(&self) -> bool {
        self.host.cpu.is_some_and(|cpu| !cpu.is_whole())
    }

    /// Restricts the guest's processor as the experiment requests. Returns the commands that have the same effect.
    ///
    /// # Errors
    /// If the guest's processors cannot be determined or restricted.
    pub fn contend(&mut self) -> Result<&[String], Error> {
        Ok(self.contention.insert(contention::apply(self.machine.processors()?, &self.host)?).commands())
    }

    /// Measures the CPU shares, and ends the restriction.
    pub fn relieve(&mut self) {
        if let Some(contention) = self.contention.take() {
            self.shares = contention.measure(self.name.as_deref());
        }
    }

    /// Converts a time of this machine's clock to the guest's clock.
    pub fn at(&self, ours_ns: u64) -> u64 {
        self.clock.guest_ns(ours_ns)
    }

    /// Converts the times of a client's run to this machine's clock, with the drift from [`Guest::leave`].
    pub fn in_our_time(&self, mut run: ProgramRun) -> ProgramRun {
        let of = |guest_us: u64| (guest_us as f64 / (1.0 + self.drift_ppm / 1e6)).round() as u64;
        (run.start_us, run.end_us) = (of(run.start_us), of(run.end_us));
        run
    }

    /// Compares the clocks at the end, and returns the measurements of the guest.
    ///
    /// # Errors
    /// If the guest does not answer, a host fails, or the user requested a stop.
    pub fn leave(&mut self, processes: &mut HostProcesses<'_>) -> Result<HostReport, Failure> {
        let drift_ppm = self.clock.drift_ppm(&compare(processes, self.number)?);
        self.drift_ppm = drift_ppm;
        let measured = [
            ("guest_boot_us", self.boot_s * 1e6),
            ("guest_clock_uncertainty_us", self.clock.uncertainty().0 as f64 / 1e3),
            ("guest_clock_drift_ppm", drift_ppm),
        ];
        let is_off = drift_ppm.abs() > WORST_DRIFT_PPM;
        let direction = if drift_ppm > 0.0 { "fast" } else { "slow" };
        let doubt = is_off.then(|| {
            let ppm = drift_ppm.abs();
            format!("the clock of the guest {} is {ppm:.0} ppm too {direction}", processes.name(self.number))
        });
        let measured = measured.map(|(name, value)| (name.to_owned(), value));
        Ok(HostReport {
            measured: measured.into_iter().chain(self.shares.clone()).collect(),
            untrustworthy: doubt.into_iter().collect(),
        })
    }
}

fn compare(processes: &mut HostProcesses<'_>, number: usize) -> Result<Comparison, Failure> {
    let mut readings = Vec::new();
    for _ in 0..CLOCK_QUESTIONS {
        let from_ns = monotonic_ns();
        processes.send(number, &Command::Clock);
        match processes.receive_within(PATIENCE)? {
            Some((who, HostEvent::Clock { monotonic_ns: guest_ns })) if who == number => {
                readings.push(ClockReading { from_ns, until_ns: monotonic_ns(), guest_ns });
            }
            Some((who, event)) => return Err(unexpected(processes, who, &event).into()),
            None => return Err(processes.timeout_error(&[number], "clock", PATIENCE).into()),
        }
    }
    Comparison::of(readings).ok_or_else(|| Error::new("bad-host", "no clock was reported", "please report it").into())
}
