//! Selects the modules of a guest's kernel.
//!
//! A distribution's package has modules in a folder tree, possibly compressed and without the index that `depmod`
//! creates. A module itself contains its dependencies: `depends=` in its section `.modinfo`.
//!
//! Source: modinfo(8), depmod(8), Linux include/linux/module.h.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Modules that every guest needs: drivers of its devices, and the module for sampling.
pub(super) const DEVICES: &[&str] = &["virtio_pci", "virtio_net", "virtio_console", "tcp_diag"];

/// Name prefixes of the modules of congestion controls and of queue disciplines.
const ALGORITHM: &str = "tcp_";
const QDISC: &str = "sch_";

/// File suffixes of modules, and the program that decompresses each.
const ENDINGS: &[(&str, Option<&str>)] =
    &[(".ko", None), (".ko.xz", Some("xz")), (".ko.zst", Some("zstd")), (".ko.gz", Some("gzip"))];

/// A module in a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Module {
    /// Name of the module, with `_` instead of `-`.
    pub name: String,
    /// Names of the modules that it depends on, which are loaded first.
    pub needs: Vec<String>,
}

/// Paths of modules, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Modules {
    files: BTreeMap<String, PathBuf>,
}

impl Modules {
    /// Finds the modules in a folder and below it. Symbolic links to folders are not followed, because they point to
    /// the kernel's source.
    ///
    /// # Errors
    /// `bad-kernel`: the folder cannot be read, or contains no modules.
    pub fn find(folder: &Path) -> Result<Modules, Error> {
        let bad = |found: String| {
            Error::new("bad-kernel", found, "set the directory with the kernel's modules: --modules DIR")
        };
        let mut files = BTreeMap::new();
        walk(folder, &mut files).map_err(|error| bad(format!("{}: {error}", folder.display())))?;
        if files.is_empty() {
            return Err(bad(format!("{} has no kernel modules (*.ko)", folder.display())));
        }
        Ok(Modules { files })
    }

    /// Returns the modules of every guest, without their dependencies.
    pub fn wanted(&self) -> impl Iterator<Item = (&str, &Path)> {
        let is_wanted = |name: &str| name.starts_with(ALGORITHM) || DEVICES.contains(&name);
        self.files.iter().filter(move |(name, _)| is_wanted(name)).map(|(name, file)| (name.as_str(), file.as_path()))
    }

    /// Returns the modules that affect results: those of every guest, and queue disciplines.
    pub fn decisive(&self) -> impl Iterator<Item = (&str, &Path)> {
        let is_decisive =
            |name: &str| name.starts_with(ALGORITHM) || name.starts_with(QDISC) || DEVICES.contains(&name);
        self.files.iter().filter(move |(name, _)| is_decisive(name)).map(|(name, file)| (name.as_str(), file.as_path()))
    }

    /// Returns the queue disciplines that are modules.
    pub fn qdiscs(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter_map(|name| name.strip_prefix(QDISC))
    }

    /// Returns the module of a queue discipline, if there is one.
    pub fn qdisc(&self, name: &str) -> Option<String> {
        Some(format!("{QDISC}{}", plain(name))).filter(|module| self.files.contains_key(module))
    }

    /// Returns these modules and their dependencies, decompressed. Missing ones are assumed to be built in.
    ///
    /// # Errors
    /// If a module cannot be read.
    pub fn read<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> io::Result<Vec<(Module, Vec<u8>)>> {
        let mut read: BTreeMap<String, (Module, Vec<u8>)> = BTreeMap::new();
        let mut due: Vec<String> = names.into_iter().map(str::to_owned).collect();
        while let Some(name) = due.pop() {
            let Some(file) = self.files.get(&name).filter(|_| !read.contains_key(&name)) else { continue };
            let bytes = unpack(file)?;
            let needs = needs(&bytes);
            due.extend(needs.iter().cloned());
            read.insert(name.clone(), (Module { name, needs }, bytes));
        }
        Ok(read.into_values().collect())
    }
}

/// Returns the dependencies that a module declares.
pub(in crate::vm) fn needs(module: &[u8]) -> Vec<String> {
    let mut entries = module.split(|byte| *byte == 0);
    let dependencies = entries.find_map(|entry| entry.strip_prefix(b"depends=")).unwrap_or_default();
    let names = String::from_utf8_lossy(dependencies);
    names.split(',').filter(|name| !name.is_empty()).map(plain).collect()
}

fn walk(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else if let Some(name) = entry.file_name().to_str().and_then(name_of) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

fn name_of(file: &str) -> Option<String> {
    ENDINGS.iter().find_map(|(ending, _)| file.strip_suffix(ending)).map(plain)
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn unpack(file: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(file)?;
    let name = file.to_string_lossy();
    let Some(program) = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).and_then(|(_, program)| *program)
    else {
        return Ok(bytes);
    };
    let failed = |why: String| io::Error::other(format!("{program} -dc {name}: {why}"));
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let feed = child.stdin.take().map(|mut stdin| std::thread::spawn(move || stdin.write_all(&bytes)));
    let output = child.wait_with_output()?;
    // A program that does not read its input reports the reason.
    let _ = feed.map(std::thread::JoinHandle::join);
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(needs: &str) -> Vec<u8> {
        format!("\u{7f}ELF\0license=GPL\0depends={needs}\0name=x\0").into_bytes()
    }

    #[test]
    fn module_dependencies_are_included_and_missing_modules_count_as_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("kernel/net");
        fs::create_dir_all(&deep).unwrap();
        let files = [
            ("virtio_net.ko", "net-failover,virtio"),
            ("net-failover.ko", "failover"),
            ("tcp_mine.ko", ""),
            ("x.ko", ""),
        ];
        for (name, needs) in files {
            fs::write(deep.join(name), module(needs)).unwrap();
        }
        let modules = Modules::find(folder.path()).unwrap();
        let wanted: Vec<&str> = modules.wanted().map(|(name, _)| name).collect();
        assert_eq!(wanted, ["tcp_mine", "virtio_net"]);
        let read = modules.read(wanted).unwrap();
        let names_and_needs: Vec<(&str, usize)> =
            read.iter().map(|(it, _)| (it.name.as_str(), it.needs.len())).collect();
        assert_eq!(names_and_needs, [("net_failover", 1), ("tcp_mine", 0), ("virtio_net", 2)]);
    }

    #[test]
    fn qdisc_modules_are_not_loaded_by_default_but_identify_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["sch_fq.ko", "sch_my-own.ko", "tcp_mine.ko", "snd.ko"] {
            fs::write(folder.path().join(name), module("")).unwrap();
        }
        let modules = Modules::find(folder.path()).unwrap();
        assert_eq!(modules.wanted().map(|(name, _)| name).collect::<Vec<_>>(), ["tcp_mine"]);
        assert_eq!(modules.decisive().map(|(name, _)| name).collect::<Vec<_>>(), ["sch_fq", "sch_my_own", "tcp_mine"]);
        assert_eq!(modules.qdiscs().collect::<Vec<_>>(), ["fq", "my_own"]);
        assert_eq!((modules.qdisc("my-own").as_deref(), modules.qdisc("cake")), (Some("sch_my_own"), None));
    }

    #[test]
    fn compressed_modules_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tcp_mine.ko");
        fs::write(&file, module("")).unwrap();
        assert!(Command::new("gzip").arg(&file).status().unwrap().success());
        let modules = Modules::find(folder.path()).unwrap();
        assert_eq!(modules.read(["tcp_mine"]).unwrap()[0].1, module(""));
        fs::write(folder.path().join("tcp_mine.ko.gz"), "no gzip").unwrap();
        let error = modules.read(["tcp_mine"]).unwrap_err().to_string();
        assert!(error.contains("tcp_mine.ko.gz"), "{error}");
    }

    #[test]
    fn a_directory_without_modules_is_rejected() {
        let error = Modules::find(tempfile::tempdir().unwrap().path()).unwrap_err();
        assert!(error.message.contains("no kernel modules") && error.hint.contains("--modules"), "{error}");
    }
}
