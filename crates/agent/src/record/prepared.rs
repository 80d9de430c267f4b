//! Checks the options and the machine, and derives settings from them.

use super::detail::Detail;
use super::files::{self, Addresses, Key};
use super::options::{Options, Privacy};
use crate::flow::capacity::Capacity;
use crate::flow::cgroups::{Paths, Recorded, mount_point};
use crate::flow::program::{check_alone, check_no_other_tuner};
use crate::flow::record_event::Settings;
use crate::requirements::{self, BPF, FILES_OF_RECORDER, NET_ADMIN, PERFMON, SYS_ADMIN};
use crate::show::observed::now_us;
use crate::show::snapshot::Snapshot;
use std::path::PathBuf;
use std::time::Duration;
use thalweg_store::Problem;

/// Capabilities that recording requires: one of each list.
pub const RIGHTS: &[&[requirements::Right]] = &[&[NET_ADMIN, SYS_ADMIN], &[BPF, SYS_ADMIN], &[PERFMON, SYS_ADMIN]];

/// Checked options and properties of the machine.
pub struct Prepared {
    /// Mount point of the cgroup file system.
    pub mount: PathBuf,
    /// The cgroup whose connections are recorded.
    pub cgroup: Recorded,
    /// Paths of cgroups by id.
    pub paths: Paths,
    /// The form of recorded addresses.
    pub addresses: Addresses,
}

impl Prepared {
    /// Checks the machine and the options. `sets`: algorithms will be set. Creates a missing key, and terminates the
    /// watchdog of a killed agent.
    ///
    /// # Errors
    /// If the machine lacks a feature, an option is invalid, or another program prevents recording.
    pub fn new(options: &Options, sets: bool) -> Result<Prepared, Problem> {
        requirements::check_files(FILES_OF_RECORDER)?;
        requirements::check_version()?;
        requirements::check_rights(RIGHTS)?;
        requirements::read_btf()?;
        let mount = mount_point()?;
        let cgroup = Recorded::find(&mount, options.cgroup.as_deref())?;
        let mut paths = Paths::new(mount.clone());
        let mut path_of = |number| paths.of(number).map(|path| path.to_string());
        check_alone(&cgroup, &mut path_of)?;
        if sets {
            check_no_other_tuner(&cgroup, &mut path_of)?;
        }
        Ok(Prepared { mount, cgroup, paths, addresses: addresses(options)? })
    }

    /// Returns the part of the status that does not change.
    pub fn facts(&self, options: &Options) -> Snapshot {
        Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            since_us: now_us(),
            cgroup: self.cgroup.path.display().to_string(),
            sampled_one_in: options.sample,
            addresses: options.addresses.name().to_owned(),
            out: options.out.display().to_string(),
            ..Snapshot::default()
        }
    }
}

/// Returns the form of recorded addresses.
///
/// # Errors
/// If [`Key::open`] fails.
pub fn addresses(options: &Options) -> Result<Addresses, Problem> {
    Ok(match options.addresses {
        Privacy::Whole => Addresses::Whole,
        Privacy::Truncated => Addresses::Truncated,
        Privacy::Hashed => Addresses::Hashed(Key::open(&options.key)?),
    })
}

/// Returns the settings of the record files.
pub fn writer_settings(options: &Options) -> files::Settings {
    files::Settings {
        folder: options.out.clone(),
        flush: options.flush,
        rotate: options.rotate,
        rotate_bytes: options.rotate_size.0,
        max_bytes: options.max_size.0,
    }
}

/// Returns the settings of the BPF programs.
pub fn program_settings(options: &Options, cgroup: &Recorded, jiffy_ns: u64, capacity: Capacity) -> Settings {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let has_all = options.detail() == Detail::Full;
    Settings {
        jiffy_us: jiffy_ns / 1_000,
        idle_gap_us: us(options.idle_gap),
        sample_one_in: options.sample,
        interim_us: if has_all { us(options.interim) } else { u64::MAX },
        cgroup_level: cgroup.level,
        set_mask: capacity.set_mask(),
        has_histograms: u64::from(has_all),
    }
}
