//! Flows that the user's programs generate: servers and clients, in the namespaces or the guests of an experiment's
//! hosts.
//!
//! ```text
//!  host of programs ─► servers: started, ready ─► configured … start ─► clients, by the agenda ─► stop ─► runs
//!                        └ supervisor ─► program     one supervisor per program, which ends all of its processes
//! ```
//!
//! The [`meter`](crate::meter) measures the flow's bytes from packets; this module records when clients ran and how
//! they ended. The output of programs is below the run directory's `programs/<id>/<flow>/`.

mod clients;
mod part;
mod process;
mod processes;
mod ready;
mod servers;
mod supervisor;
mod sys;

pub use part::Programs;
pub(crate) use ready::sockets;
pub use supervisor::supervise;

use crate::error::Error;
use crate::protocol::{Command, HostEvent};
use crate::stage::{HostReport, Stage};
use crate::wakeup::Wakeup;
use clients::Clients;
use part::{Copy, name};
use rustix::event::{PollFd, PollFlags, poll};
use servers::Servers;
use std::fs;
use std::path::Path;
use std::time::Duration;
use thalweg_plan::plan::Experiment;

/// Size limit of a program's folder `{out}`, in bytes.
const MAX_OUTPUT_BYTES: u64 = 1 << 30;

/// Returns the longest time that the servers of a host have to become ready.
pub fn max_wait(in_guest: bool) -> Duration {
    servers::max_wait(in_guest)
}

/// Runs the programs of a host until the command `stop`.
///
/// # Errors
/// If a server does not become ready, a program cannot be started, or waiting for commands fails.
pub fn play(stage: &Stage<'_>, experiment: &Experiment, programs: &Programs) -> Result<HostReport, Error> {
    let failed = |error: rustix::io::Errno| Error::new("no-resources", error.to_string(), "close other programs");
    let wakeup = Wakeup::open().map_err(failed)?;
    let mut servers = Servers::start(experiment, programs, &wakeup)?;
    let clock = stage.wait_for_start()?;
    let mut clients = Clients::new(experiment, programs, clock, &wakeup);
    let mut doubts = Vec::new();
    loop {
        let timeout = clients.run_due(stage)?;
        let mut fds =
            [PollFd::from_borrowed_fd(stage.commands.wakeup(), PollFlags::IN), PollFd::new(&wakeup, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        wakeup.clear();
        clients.take_endings(stage);
        doubts.extend(servers.failures());
        if clients.is_disk_check_due() {
            doubts.extend(check_disk(experiment, &mut servers, &mut clients));
        }
        while let Some(command) = stage.commands.try_next() {
            match command {
                Command::Stop => return Ok(finish(stage, programs, servers, clients, doubts)),
                Command::Over { flow } => clients.flow_over(&flow),
                Command::Start { .. } | Command::Configure(_) | Command::Clock => {}
            }
        }
    }
}

fn finish(
    stage: &Stage<'_>,
    programs: &Programs,
    servers: Servers<'_>,
    clients: Clients<'_>,
    mut doubts: Vec<String>,
) -> HostReport {
    let (runs, of_clients) = clients.finish();
    doubts.extend(of_clients);
    doubts.extend(servers.stop());
    if programs.in_guest {
        doubts.extend(flush(&programs.folder).err().map(|error| format!("output of programs is missing: {error}")));
    }
    for run in runs {
        stage.events.buffer(&HostEvent::ProgramRun(Box::new(run)));
    }
    HostReport { measured: [].into(), untrustworthy: doubts }
}

/// Writes the output of programs from the page cache of a guest to the host machine.
fn flush(folder: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(fs::File::open(folder)?)?)
}

fn check_disk(experiment: &Experiment, servers: &mut Servers<'_>, clients: &mut Clients<'_>) -> Vec<String> {
    let too_large = |folder: &Path| size_below(folder) > MAX_OUTPUT_BYTES;
    let flooding: Vec<Copy> =
        servers.outputs().filter(|(_, process)| too_large(&process.out)).map(|(of, _)| of).collect();
    let sentence = |kind: &str, of: Copy| {
        format!("{} wrote more than {} MiB and was killed", name(kind, experiment, of), MAX_OUTPUT_BYTES >> 20)
    };
    let mut sentences = Vec::new();
    for of in flooding {
        servers.kill(of);
        sentences.push(sentence("server", of));
    }
    sentences
        .extend(clients.kill_where(|process| too_large(&process.out)).into_iter().map(|of| sentence("client", of)));
    sentences
}

fn size_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => size_below(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
