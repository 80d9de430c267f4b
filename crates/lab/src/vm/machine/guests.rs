//! What the engine does with guests: finds their kernel, starts them in a network, looks at their processors.

use super::qemu::{self, Accelerator, Card};
use super::{probe, sys};
use crate::algorithms::built_in::is_built_in;
use crate::algorithms::{self, Algorithm};
use crate::error::Error;
use crate::net::{GUEST_TAP, Network, Place};
use crate::vm::image::initramfs::{self, Base};
use crate::vm::image::{VmKernel, qdisc};
use crate::vm::order::Order;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Child;
use std::time::Instant;
use thalweg_plan::plan::{Experiment, Flow, Host};

/// Everything that guests are started with.
#[derive(Debug)]
pub struct Guests {
    kernel: VmKernel,
    base: Base,
    found: probe::Found,
}

impl Guests {
    /// Looks whether guests can be had here; `engine` is this program. The first time with a kernel, it is booted once.
    ///
    /// # Errors
    /// What the machine lacks (`no-tool`, `no-namespaces`, `no-tap`, `no-guests`), or the kernel (`no-kernel`,
    /// `bad-kernel`).
    pub fn open(engine: &Path) -> Result<Guests, Error> {
        probe::machine()?;
        let kernel = VmKernel::find()?;
        let base = initramfs::base(&kernel, engine)?;
        let found = probe::ask(&kernel, &base).inspect_err(|_| base.discard())?;
        Ok(Guests { kernel, base, found })
    }

    /// What tells results with these guests apart from others: the kernel, and what runs it.
    pub fn version(&self) -> String {
        format!("{} in QEMU with {}", self.kernel.version(), self.accelerator().name())
    }

    /// The release of their kernel.
    pub fn release(&self) -> &str {
        &self.kernel.release
    }

    /// What runs them.
    pub fn accelerator(&self) -> Accelerator {
        self.found.accelerator
    }

    /// Congestion controls that they have.
    pub fn algorithms(&self) -> &[String] {
        &self.found.traits.algorithms
    }

    /// Why they do not have the algorithm `name` that the agent carries; `None`: they have it.
    pub fn why_not(&self, name: &str) -> Option<Error> {
        if self.algorithms().iter().any(|known| known == name) {
            return None;
        }
        if !self.base.has_agent {
            return Some(algorithms::no_agent());
        }
        let failure = self.found.traits.agent_fails.get(name)?;
        // What the agent advises is for a machine, not for a guest.
        let why = failure.split(" hint: ").next().unwrap_or(failure).trim_start_matches("thalweg-agent: ");
        Some(Error::new("unknown-cc", why, "thalweg kernel fetch gets a kernel that can have it"))
    }

    /// Checks that the guests can give a flow its congestion control.
    ///
    /// # Errors
    /// `unknown-cc`: their kernel has none of that name. `no-agent`: what would load it is missing. `not-honoured`,
    /// `bad-cc`.
    pub(crate) fn check(&self, flow: &Flow) -> Result<(), Error> {
        let is_there = |name: &str| self.algorithms().iter().any(|known| known == name);
        match algorithms::algorithm_of(flow)? {
            Algorithm::Module { .. } => Ok(()),
            Algorithm::Kernel { name } if is_there(&name) => Ok(()),
            Algorithm::Agent { name, what, .. } => {
                let why = if is_built_in(&what) {
                    self.why_not(&name)
                } else {
                    (!self.base.has_agent).then(algorithms::no_agent)
                };
                why.map_or(Ok(()), |why| {
                    let message = format!("flows.{}.cc: guests cannot have `{name}`: {}", flow.name, why.message);
                    Err(Error::new(&why.code, message, why.hint))
                })
            }
            Algorithm::Kernel { name } => {
                let all = self.algorithms().join(", ");
                let message = format!("flows.{}.cc: the guests' kernel has no `{name}`; it has {all}", flow.name);
                let hint = "thalweg kernel fetch linux-image-amd64 gets one that has every algorithm of Linux";
                Err(Error::new("unknown-cc", message, hint))
            }
        }
    }

    /// Starts the guest that plays a host; its pipes lead to the host inside.
    ///
    /// # Errors
    /// `no-guest`, or what keeps a process from being started.
    pub(crate) fn start(
        &self,
        network: &mut Network,
        place: &Place,
        experiment: &Experiment,
    ) -> Result<(Child, Machine), Error> {
        let failed = |error: io::Error| {
            let message = format!("the guest of the host {} cannot be started: {error}", place.name);
            Error::new("no-guest", message, "close other programs, then try again")
        };
        let (algorithms, mut files) = algorithms::needed(experiment, &place.flows)?;
        let (qdisc, modules) = qdisc::needed(&self.kernel, place).map_err(failed)?;
        files.extend(modules);
        let processors = experiment.hosts.get(&place.host).map_or(1, Host::cpus);
        let order = Order::Host { network: network.inside(place), algorithms, qdisc, processors };
        let content = initramfs::with_order(&self.base, &order, &files).map_err(failed)?;
        let file = sys::file_in_memory(&content).map_err(failed)?;
        let card = Card { tap: GUEST_TAP, mac: place.mac_text() };
        let place_of_file = format!("/proc/self/fd/{}", file.as_raw_fd());
        let words = qemu::command(self.accelerator(), &self.kernel.image, &place_of_file, Some(&card), processors);
        let child = network.spawn_with(&place.name, &words, |command| {
            sys::hand_over(command, &file);
        })?;
        let machine = Machine { pid: child.id(), processors: processors as usize, started: Instant::now() };
        Ok((child, machine))
    }
}

/// A guest that runs.
#[derive(Debug)]
pub struct Machine {
    pid: u32,
    /// Number of its processors.
    processors: usize,
    started: Instant,
}

impl Machine {
    /// The threads that are its processors, by their numbers in the system; there is one for each.
    ///
    /// # Errors
    /// `no-guest`: not all of them are found.
    pub fn processors(&self) -> Result<Vec<u32>, Error> {
        let found = qemu::processors(self.pid);
        if found.len() != self.processors {
            let message = format!(
                "expected {} threads of QEMU (process {}) that are a guest's processors, found {}",
                self.processors,
                self.pid,
                found.len()
            );
            return Err(Error::new(
                "no-guest",
                message,
                "look whether /proc is mounted without hidepid: findmnt /proc",
            ));
        }
        Ok(found)
    }

    /// Since it was started.
    pub(crate) fn age_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
