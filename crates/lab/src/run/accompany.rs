//! Runs the hosts of a session, in which a user's programs send packets.

use super::act::{HEADWAY, Play};
use super::host_processes::unexpected;
use super::{Failure, HostSetup, Performance, Take};
use crate::clock::{Clock, monotonic_ns};
use crate::net::Network;
use crate::protocol::{Command, HostEvent};
use crate::session::{Programs, Session};
use crate::stage::HostReport;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};
use thalweg_units::Time;

const PAUSE: Duration = Duration::from_millis(10);

impl Play<'_> {
    /// Runs the hosts while the session's programs run. Passes status and connections to the session, and other events
    /// to `take`.
    ///
    /// # Errors
    /// If a host fails, or a program cannot be started, monitored or terminated.
    pub fn accompany(
        mut self,
        network: &mut Network,
        session: Session<'_>,
        setup: HostSetup<'_>,
        take: &mut Take<'_>,
    ) -> Result<Performance, Failure> {
        let start_ns = monotonic_ns() + HEADWAY.0;
        let hosts = self.processes.pids();
        for number in 0..hosts.len() {
            self.processes.send(number, &Command::Start { at_monotonic_ns: Some(start_ns) });
        }
        thread::sleep(Duration::from_nanos(start_ns.saturating_sub(monotonic_ns())));
        let mut programs = Programs::start(network, session, setup.engine)?;
        self.processes.finish_regardless();
        let spared: Vec<u32> = hosts.into_iter().chain([network.holder()]).collect();
        let status = self.follow(&mut programs, session, &spared)?;
        let lasted = Clock::starting_at(start_ns).now().since(Time::ZERO);
        let measured = programs.end(status, &spared)?;
        let mut report = self.end(&mut |event| match event {
            HostEvent::Status(_) | HostEvent::Connection(_) => {
                (session.show)(event);
                Ok(())
            }
            event => take(event),
        })?;
        programs.dismiss();
        report.add(HostReport { measured, untrustworthy: Vec::new() });
        let HostReport { measured, untrustworthy } = report;
        Ok(Performance { lasted, measured, untrustworthy })
    }

    fn follow(&mut self, programs: &mut Programs, session: Session<'_>, spared: &[u32]) -> Result<ExitStatus, Failure> {
        loop {
            if let Some(status) = programs.poll()? {
                return Ok(status);
            }
            if (session.must_end)() {
                programs.interrupt(spared)?;
            }
            match self.processes.receive(Some(Instant::now() + PAUSE))? {
                Some((_, event @ HostEvent::Status(_))) => (session.show)(event),
                Some((number, event)) => return Err(unexpected(&self.processes, number, &event).into()),
                None => {}
            }
        }
    }
}
