//! The engine's side of guests: finds their kernel, and starts them in a network.

use super::qemu::{self, Accelerator, Card, Devices, Programs};
use super::{probe, sys};
use crate::algorithms::built_in::is_built_in;
use crate::algorithms::{self, Algorithm};
use crate::error::Error;
use crate::net::holder::search_path;
use crate::net::{GUEST_TAP, Network, Place};
use crate::vm::host_files;
use crate::vm::image::initramfs::{self, Base};
use crate::vm::image::modules::Module;
use crate::vm::image::{VmKernel, qdisc};
use crate::vm::order::{HostFiles, Order};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;
use thalweg_plan::plan::{Experiment, Flow, Host};

/// Properties that all guests share.
#[derive(Debug)]
pub struct Guests {
    engine: PathBuf,
    kernel: VmKernel,
    base: Base,
    probe_result: probe::ProbeResult,
}

impl Guests {
    /// Checks whether this machine can run guests; `engine` is the path of this program. The kernel is booted to probe
    /// it, unless a result is cached.
    ///
    /// # Errors
    /// If the machine lacks a requirement, or the kernel cannot be found, booted or probed.
    pub fn open(engine: &Path) -> Result<Guests, Error> {
        probe::machine()?;
        let kernel = VmKernel::find()?;
        let base = initramfs::base(&kernel, engine)?;
        let probe_result = probe::ask(&kernel, &base).inspect_err(|_| base.discard())?;
        Ok(Guests {
            engine: std::path::absolute(engine).unwrap_or_else(|_| engine.to_owned()),
            kernel,
            base,
            probe_result,
        })
    }

    /// Returns the version of results with these guests: the kernel, and the accelerator.
    pub fn version(&self) -> String {
        format!("{} in QEMU with {}", self.kernel.version(), self.accelerator().name())
    }

    /// Returns the release of the guests' kernel.
    pub fn release(&self) -> &str {
        &self.kernel.release
    }

    /// Returns the accelerator.
    pub fn accelerator(&self) -> Accelerator {
        self.probe_result.accelerator
    }

    /// Returns the congestion controls of the guests.
    pub fn algorithms(&self) -> &[String] {
        &self.probe_result.traits.algorithms
    }

    /// Returns the reason why the guests lack the built-in algorithm `name` of the agent; `None` if they have it or can
    /// load it.
    pub fn why_not(&self, name: &str) -> Option<Error> {
        if self.algorithms().iter().any(|known| known == name) {
            return None;
        }
        if !self.base.has_agent {
            return Some(algorithms::no_agent());
        }
        let failure = self.probe_result.traits.agent_fails.get(name)?;
        // The agent's hint applies to a machine, and not to a guest.
        let why = failure.split(" hint: ").next().unwrap_or(failure).trim_start_matches("thalweg-agent: ");
        Some(Error::new("unknown-cc", why, "thalweg kernel fetch gets a kernel that supports it"))
    }

    /// Checks that the guests support the congestion control of a flow.
    ///
    /// # Errors
    /// If the algorithm is not available, or its parameters are not supported.
    pub(crate) fn check(&self, flow: &Flow) -> Result<(), Error> {
        let is_there = |name: &str| self.algorithms().iter().any(|known| known == name);
        if self.is_label(flow) {
            return Ok(());
        }
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
                let available = self.algorithms().join(", ");
                let message = format!(
                    "flows.{}.cc: the guests' kernel does not have `{name}`; available: {available}",
                    flow.name
                );
                let hint = "choose an available one, or a kernel with it: --kernel IMAGE --modules DIR";
                Err(Error::new("unknown-cc", message, hint))
            }
        }
    }

    /// Returns whether `cc` of a flow with programs is a label, such as the name of a QUIC stack, and not an algorithm
    /// of the guests.
    fn is_label(&self, flow: &Flow) -> bool {
        flow.program.is_some() && !self.algorithms().contains(&flow.cc)
    }

    /// Starts the guest of a host; its pipes are connected to the host process inside. If it runs programs, `output` is
    /// the folder of their output, and the socket is connected to the host that runs them.
    ///
    /// # Errors
    /// If a file of the guest cannot be read or created, or QEMU cannot be started.
    pub(crate) fn start(
        &self,
        network: &mut Network,
        place: &Place,
        experiment: &Experiment,
        output: Option<&Path>,
    ) -> Result<(Child, Machine, Option<UnixStream>), Error> {
        let failed = |error: io::Error| {
            let message = format!("the guest of the host {} cannot be started: {error}", place.name);
            Error::new("no-guest", message, "close other programs and try again")
        };
        let with_algorithm = place.flows.iter().copied().filter(|flow| !self.is_label(&experiment.flows[*flow]));
        let (algorithms, mut files) = algorithms::needed(experiment, &with_algorithm.collect::<Vec<_>>())?;
        let (qdisc, modules) = qdisc::needed(&self.kernel, place).map_err(failed)?;
        files.extend(modules);
        let processors = experiment.hosts.get(&place.host).map_or(1, Host::cpus);
        let programs = match output {
            None => None,
            Some(output) => {
                let (modules, of_modules) =
                    initramfs::modules(&self.kernel, host_files::MODULES.iter().copied()).map_err(failed)?;
                files.extend(of_modules);
                Some(Box::new(self.host_files(modules, output)))
            }
        };
        let order = Order::Host { network: network.inside(place), algorithms, qdisc, processors, programs };
        let content = initramfs::with_order(&self.base, &order, &files).map_err(failed)?;
        let file = sys::file_in_memory(&content).map_err(failed)?;
        let place_of_file = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut handed_over = vec![file.as_raw_fd()];
        let sockets = output.map(|_| UnixStream::pair()).transpose().map_err(failed)?;
        let (ours, theirs) = sockets.unzip();
        let socket = theirs.as_ref().map(AsRawFd::as_raw_fd);
        handed_over.extend(socket);
        let devices = Devices {
            card: Some(Card { tap: GUEST_TAP, mac: place.mac_text() }),
            programs: output.zip(socket).map(|(output, socket)| Programs { output, socket }),
        };
        let words = qemu::command(self.accelerator(), &self.kernel.image, &place_of_file, &devices, processors);
        let child = network.spawn_with(&place.name, &words, |command| {
            sys::hand_over(command, &handed_over);
        })?;
        let machine = Machine { pid: child.id(), processors: processors as usize, started: Instant::now() };
        Ok((child, machine, ours))
    }

    fn host_files(&self, modules: Vec<Module>, output: &Path) -> HostFiles {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let hosts = [("PATH", search_path()), ("LC_ALL", "C".to_owned())].map(|(name, value)| (name.to_owned(), value));
        let environment = variables.chain(hosts).collect();
        HostFiles { modules, engine: self.engine.clone(), output: output.to_owned(), environment }
    }
}

/// A running guest.
#[derive(Debug)]
pub struct Machine {
    pid: u32,
    processors: usize,
    started: Instant,
}

impl Machine {
    /// Returns the thread id of each of the guest's processors.
    ///
    /// # Errors
    /// `no-guest`: some of the threads are not found.
    pub fn processors(&self) -> Result<Vec<u32>, Error> {
        let ids = qemu::processors(self.pid);
        if ids.len() != self.processors {
            let message = format!(
                "expected {} processor threads of a guest in QEMU (process {}), found {}",
                self.processors,
                self.pid,
                ids.len()
            );
            return Err(Error::new(
                "no-guest",
                message,
                "check whether /proc is mounted without hidepid: findmnt /proc",
            ));
        }
        Ok(ids)
    }

    /// Returns the time since the guest was started, in seconds.
    pub(crate) fn age_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
