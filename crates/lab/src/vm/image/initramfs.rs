//! The initial file system of a guest, in memory.
//!
//! ```text
//!  /engine              this program, the guest's first process
//!  /bin/ip, /bin/tc     the machine's programs
//!  /lib…, /usr/lib…     the libraries of all programs, at the paths of the machine
//!  /bin/thalweg-agent   loads eBPF congestion controls; only if the machine has it
//!  /modules/*.ko        modules, and index.json, which lists their dependencies
//!  /order.json          this guest's task, and the user's files, in a separate archive at the end
//! ```
//!
//! The part that all guests of a kernel share is cached in the user's cache folder, under a name that is derived from
//! the kernel and the programs.

use super::archive::Archive;
use super::elf;
use super::kernel::VmKernel;
use super::modules::{DEVICES, Module};
use crate::algorithms::{self, File};
use crate::cache;
use crate::error::Error;
use crate::net::probe;
use crate::vm::order::Order;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Version of the construction, to be incremented when the same inputs produce a different file system.
const RECIPE: &str = "1";

/// Paths in the file system, relative to its root.
pub(in crate::vm) const ENGINE: &str = "engine";
pub(in crate::vm) const INDEX: &str = "modules/index.json";
pub(in crate::vm) const ORDER: &str = "order.json";
pub(in crate::vm) const AGENT: &str = "bin/thalweg-agent";

const TOOLS: &[&str] = &["ip", "tc"];

pub(in crate::vm) fn module_place(name: &str) -> String {
    format!("modules/{name}.ko")
}

/// Returns modules of a kernel with their dependencies, and their files in a guest. A missing module is assumed to be
/// built in.
///
/// # Errors
/// If a module cannot be read.
pub(in crate::vm) fn modules<'a>(
    kernel: &VmKernel,
    names: impl IntoIterator<Item = &'a str>,
) -> io::Result<(Vec<Module>, Vec<File>)> {
    let read = kernel.modules.read(names)?.into_iter();
    Ok(read.map(|(module, bytes)| (module.clone(), (module_place(&module.name), bytes))).unzip())
}

/// The file system of a kernel's guests, without an order.
#[derive(Debug)]
pub(in crate::vm) struct Base {
    /// Cache key.
    pub key: String,
    /// Content, loaded at the first use.
    bytes: OnceLock<Vec<u8>>,
    /// Whether it includes the agent.
    pub has_agent: bool,
    /// Path of the cached file.
    place: Option<PathBuf>,
}

impl Base {
    fn bytes(&self) -> io::Result<&[u8]> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let place = self.place.as_ref().ok_or_else(|| io::Error::other("it is not cached"))?;
        let bytes = fs::read(place)?;
        Ok(self.bytes.get_or_init(|| bytes))
    }

    /// Removes the file from the cache, because it may be the reason why a guest does not boot.
    pub fn discard(&self) {
        if let Some(place) = &self.place {
            let _ = fs::remove_file(place);
        }
    }
}

/// Builds the file system of this kernel's guests. `engine` is the path of this program.
///
/// # Errors
/// `bad-guest`: one of its files cannot be read.
pub(in crate::vm) fn base(kernel: &VmKernel, engine: &Path) -> Result<Base, Error> {
    let failed = |error: io::Error| {
        let message = format!("the file system of guests cannot be created: {error}");
        Error::new("bad-guest", message, "check that this file is readable and complete")
    };
    let mut programs = vec![(ENGINE.to_owned(), engine.to_owned())];
    for tool in TOOLS {
        let place =
            probe::tool(tool).ok_or_else(|| failed(io::Error::other(format!("the program {tool} is missing"))))?;
        programs.push((format!("bin/{tool}"), place));
    }
    let agent = algorithms::agent(engine);
    let has_agent = agent.is_some();
    programs.extend(agent.map(|place| (AGENT.to_owned(), place)));
    let key = key(kernel, &programs).map_err(failed)?;
    let folder = cache::folder().map(|cache| cache.join("vm/initramfs"));
    let place = folder.as_ref().map(|folder| folder.join(format!("{key}.cpio")));
    if place.as_ref().is_some_and(|place| place.exists()) {
        return Ok(Base { key, bytes: OnceLock::new(), has_agent, place });
    }
    let bytes = make(kernel, &programs).map_err(failed)?;
    if let (Some(folder), Some(place)) = (&folder, &place) {
        let _ = cache::keep(place, &bytes);
        cache::forget(folder);
    }
    Ok(Base { key, bytes: bytes.into(), has_agent, place })
}

/// Returns the initial file system of a guest.
pub(in crate::vm) fn with_order(base: &Base, order: &Order, files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file(ORDER, &serde_json::to_vec(order)?);
    files.iter().for_each(|(place, bytes)| archive.file(place, bytes));
    Ok([base.bytes()?, &archive.finish()].concat())
}

/// Returns the cache key. Programs are identified by path and metadata, because reading them takes long.
fn key(kernel: &VmKernel, programs: &[(String, PathBuf)]) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(RECIPE);
    hasher.update(&kernel.sha256);
    for (name, place) in programs {
        let about = fs::metadata(place)?;
        let (size, time, part, inode) = (about.len(), about.mtime(), about.mtime_nsec(), about.ino());
        hasher.update(format!("{name} {} {size} {time} {part} {inode}\n", place.display()));
    }
    Ok(cache::hexadecimal(hasher)[..32].to_owned())
}

fn make(kernel: &VmKernel, programs: &[(String, PathBuf)]) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "run", "tmp"] {
        archive.folder(folder);
    }
    // The kernel opens the console before the first process can mount a file system.
    archive.device("dev/console", (5, 1));
    let mut libraries = BTreeSet::new();
    for (name, place) in programs {
        let program = elf::read(place)?;
        archive.program(name, &program.bytes);
        if let Some(loader) = program.loader {
            libraries.extend(elf::libraries(&loader, place)?);
            libraries.insert(loader);
        }
    }
    for library in libraries {
        archive.program(library.trim_start_matches('/'), &elf::read(Path::new(&library))?.bytes);
    }
    let wanted: Vec<&str> = kernel.modules.wanted().map(|(name, _)| name).collect();
    let mut index: Vec<Module> = Vec::new();
    for (module, bytes) in kernel.modules.read(wanted)? {
        archive.file(&module_place(&module.name), &bytes);
        index.push(module);
    }
    archive.file(INDEX, &serde_json::to_vec(&index)?);
    Ok(archive.finish())
}

/// Returns the modules that are loaded first.
pub(in crate::vm) fn devices() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().copied()
}
