//! `thalweg-lockstep`: records inputs and decisions of the kernel's congestion controllers while the engine `kernel`
//! runs a set of scenes. The recordings are the fixtures of the replay in `crates/cc/tests/lockstep`.
//! docs/concepts/fidelity.md describes how it works.

mod algorithm;
mod fixture;
mod layout;
mod lockstep_event;
mod record;
mod scene;

use algorithm::Algorithm;
use clap::Parser;
use fixture::Header;
use flate2::{Compression, GzBuilder};
use record::Registered;
use scene::{SCENES, Scene};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maximum number of attempts. A recording is repeated if an external event has spoiled it: occasionally, the coarse
/// clock ticks during a call.
const ATTEMPTS: usize = 20;

/// Record the inputs and decisions of the kernel's congestion controllers, as fixtures for crates/cc/tests/lockstep.
///
/// Needs root, because it registers congestion controls, and Linux 6.10 or newer. Its registrations are removed when it
/// exits. `dctcp` is recorded only if it is named; it needs the module tcp_dctcp and Linux 6.1, as in the virtual
/// machine of tools/lockstep_guest.py.
#[derive(Debug, Parser)]
#[command(name = "thalweg-lockstep", after_help = "Example: sudo make lockstep")]
struct Arguments {
    /// Directory of the recordings
    #[arg(long, value_name = "DIR", default_value = "crates/cc/tests/lockstep/recordings")]
    out: PathBuf,
    /// The engine that runs the scenes
    #[arg(long, value_name = "FILE", default_value = "target/release/thalweg-engine")]
    engine: PathBuf,
    /// Record only this algorithm; default: all but dctcp
    #[arg(long, value_name = "NAME", value_parser = Algorithm::ALL.map(Algorithm::name))]
    algorithm: Option<String>,
    /// Record only this scene
    #[arg(long, value_name = "NAME", value_parser = SCENES.map(|scene| scene.name))]
    scene: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("thalweg-lockstep: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("found a user other than root, expected root, because it registers congestion controls\n  \
                    hint: sudo make lockstep"
            .to_owned());
    }
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_stopped))
            .map_err(|error| format!("signals cannot be caught: {error}"))?;
    }
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let date = today()?;
    let is_wanted = |algorithm: &Algorithm| match &arguments.algorithm {
        Some(name) => name == algorithm.name(),
        None => *algorithm != Algorithm::Dctcp,
    };
    for algorithm in Algorithm::ALL.into_iter().filter(is_wanted) {
        let members = match algorithm.structure() {
            Some(structure) => layout::of(structure, &format!("tcp_{}", algorithm.name()))?,
            None => Vec::new(),
        };
        let registered = Registered::new(algorithm)?;
        for scene in SCENES.iter().filter(|scene| arguments.scene.as_ref().is_none_or(|name| name == scene.name)) {
            let header = Header {
                algorithm,
                scene: scene.name,
                about: scene.about.to_owned(),
                kernel: kernel.clone(),
                date: date.clone(),
            };
            let text = record(&registered, arguments, scene, algorithm, &is_stopped, |events| {
                fixture::write(&header, &members, events)
            })?;
            let path = arguments.out.join(format!("{}-{}.txt.gz", algorithm.name(), scene.name));
            save(&path, &text)?;
            let lines = text.lines().count();
            println!("{}: {lines} lines, {} bytes", path.display(), path.metadata().map_or(0, |data| data.len()));
        }
    }
    Ok(())
}

/// Records a scene until the recording is valid; fails after `ATTEMPTS` invalid ones.
fn record(
    registered: &Registered,
    arguments: &Arguments,
    scene: &Scene,
    algorithm: Algorithm,
    is_stopped: &AtomicBool,
    write: impl Fn(&[lockstep_event::LockstepEvent]) -> Result<String, String>,
) -> Result<String, String> {
    let mut attempt = 1;
    loop {
        let events = registered.record(&arguments.engine, scene, algorithm, is_stopped)?;
        match write(&events) {
            Ok(text) => return Ok(text),
            Err(reason) if attempt == ATTEMPTS => return Err(format!("{}: {reason}", scene.name)),
            Err(reason) => eprintln!("{} {}: recording again: {reason}", algorithm.name(), scene.name),
        }
        attempt += 1;
    }
}

/// Writes a compressed text. The same text always results in the same bytes.
fn save(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = GzBuilder::new().write(Vec::new(), Compression::best());
    file.write_all(text.as_bytes()).map_err(failed)?;
    std::fs::write(path, file.finish().map_err(failed)?).map_err(failed)
}

fn today() -> Result<String, String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().map_err(|error| format!("date: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
