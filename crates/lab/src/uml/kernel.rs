//! Finds the user-mode Linux kernel, and verifies that it is unchanged since the build.
//!
//! `thalweg kernel build` creates a folder with the program `linux` and its description `kernel.json`.
//! `THALWEG_UML_KERNEL` names such a folder; by default, the most recently built kernel is used.

use super::Traits;
use crate::cache;
use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const FOLDER: &str = "THALWEG_UML_KERNEL";

const BUILD: &str = "thalweg kernel build";

/// Number of hexadecimal digits of a checksum that identify a kernel.
const SHORT: usize = 12;

const TRAITS: &str = "traits.json";

/// A user-mode Linux kernel that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmlKernel {
    /// Path of the program `linux`.
    pub program: PathBuf,
    /// Release, such as `6.1.192`.
    pub release: String,
    sha256: String,
    folder: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Description {
    format: u64,
    release: String,
    linux_sha256: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    format: u64,
    linux_sha256: String,
    traits: Traits,
}

/// Supported format of `kernel.json`.
const FORMAT: u64 = 1;

/// Current format of `traits.json`.
const TRAITS_FORMAT: u64 = 2;

impl UmlKernel {
    /// Finds the kernel of this user.
    ///
    /// # Errors
    /// `no-kernel`: no kernel is built. `bad-kernel`: see [`UmlKernel::open`].
    pub fn find() -> Result<UmlKernel, Error> {
        if let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
            return UmlKernel::open(Path::new(&folder));
        }
        let folder = cache::folder().map(|cache| cache.join("uml/current"));
        match folder.filter(|folder| folder.join("kernel.json").exists()) {
            Some(folder) => UmlKernel::open(&folder),
            None => Err(Error::new("no-kernel", "no user-mode Linux kernel has been built", BUILD)),
        }
    }

    /// Opens the kernel in a folder.
    ///
    /// # Errors
    /// `bad-kernel`: the folder is not from `thalweg kernel build`, or the kernel has changed since.
    pub fn open(folder: &Path) -> Result<UmlKernel, Error> {
        let bad = |found: String| Error::new("bad-kernel", found, format!("build it again: {BUILD}"));
        // Resolved, so that a later build does not change the kernel during an experiment.
        let folder = folder.canonicalize().map_err(|error| bad(format!("{}: {error}", folder.display())))?;
        let file = folder.join("kernel.json");
        let text = fs::read_to_string(&file).map_err(|error| bad(format!("{}: {error}", file.display())))?;
        let Description { format, release, linux_sha256 } =
            serde_json::from_str(&text).map_err(|error| bad(format!("{}: {error}", file.display())))?;
        if format != FORMAT {
            return Err(bad(format!("{} has the format {format}, expected {FORMAT}", file.display())));
        }
        let program = folder.join("linux");
        let sha256 = cache::checksum(&program).map_err(|error| bad(format!("{}: {error}", program.display())))?;
        if sha256 != linux_sha256 {
            let is_not = format!("{} is not the program that was built: its SHA-256 is {sha256}", program.display());
            return Err(bad(format!("{is_not}, but kernel.json has {linux_sha256}")));
        }
        Ok(UmlKernel { program, release, sha256, folder })
    }

    /// Returns an identifier of the kernel: its release, and the first digits of its checksum.
    pub fn version(&self) -> String {
        format!("{} {}", self.release, &self.sha256[..SHORT])
    }

    /// Returns the traits of the kernel: from the kernel's folder or the user's cache folder, or else from `ask`.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn traits(&self, ask: impl FnOnce(&UmlKernel) -> Result<Traits, Error>) -> Result<Traits, Error> {
        let short = &self.sha256[..SHORT];
        let elsewhere = cache::folder().map(|cache| cache.join(format!("uml-traits/{short}.json")));
        let places: Vec<PathBuf> = [self.folder.join(TRAITS)].into_iter().chain(elsewhere).collect();
        if let Some(traits) = places.iter().find_map(|place| self.kept(place)) {
            return Ok(traits);
        }
        let traits = ask(self)?;
        let kept = Kept { format: TRAITS_FORMAT, linux_sha256: self.sha256.clone(), traits };
        // If no folder can be written, the kernel is probed again next time.
        let _ = places.iter().any(|place| keep(place, &kept).is_ok());
        Ok(kept.traits)
    }

    fn kept(&self, place: &Path) -> Option<Traits> {
        let kept: Kept = serde_json::from_slice(&fs::read(place).ok()?).ok()?;
        (kept.format == TRAITS_FORMAT && kept.linux_sha256 == self.sha256).then_some(kept.traits)
    }
}

fn keep(place: &Path, kept: &Kept) -> io::Result<()> {
    cache::keep(place, &serde_json::to_vec(kept)?)
}
