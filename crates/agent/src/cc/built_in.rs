//! The algorithms that are built into the agent.

use super::kernel::StructOpsKernel;
use super::object::Algorithm;
use super::settable::{NO_RULE, Settable, Settings};
use crate::object;
use libbpf_rs::{MapType, OpenObject};
use std::ffi::OsStr;
use thalweg_store::Problem;

/// An algorithm that the agent carries.
#[derive(Debug)]
pub struct BuiltIn {
    /// Name.
    pub name: &'static str,
    object: &'static [u8],
    /// Name of the struct_ops map for each number of arguments of the kernel's `cong_control`.
    registrations: [(usize, &'static str); 2],
    /// Whether it calls functions of the kernel's own BBR.
    calls_bbr: bool,
    /// Parameters of the algorithm.
    pub settable: Settable,
}

/// BBR with a rule for senders on a shared CPU: bpf/cc/bbr_cpu.
pub const BBR_CPU: BuiltIn = BuiltIn {
    name: "bbr_cpu",
    object: include_bytes!(concat!(env!("OUT_DIR"), "/bbr_cpu.bpf.o")),
    registrations: [(4, "bbr_cpu"), (2, "bbr_cpu_6_9")],
    calls_bbr: true,
    settable: Settable::Rule { names: &["paper", "schedule"], default: "schedule" },
};

/// BBR version 3: bpf/cc/bbr3.
pub const BBR3: BuiltIn = BuiltIn {
    name: "bbr3",
    object: include_bytes!(concat!(env!("OUT_DIR"), "/bbr3.bpf.o")),
    registrations: [(4, "bbr3"), (2, "bbr3_6_9")],
    calls_bbr: false,
    settable: Settable::Rule { names: &[NO_RULE, "paper", "schedule"], default: NO_RULE },
};

/// BBR with parameters: bpf/cc/bbr_tuned.
pub const BBR_TUNED: BuiltIn = BuiltIn {
    name: "bbr_tuned",
    object: include_bytes!(concat!(env!("OUT_DIR"), "/bbr_tuned.bpf.o")),
    registrations: [(4, "bbr_tuned"), (2, "bbr_tuned_6_9")],
    calls_bbr: true,
    settable: Settable::Bbr { of: "bbr" },
};

/// BBR with an adaptive probing gain: bpf/cc/bbr_tuned with other parameters.
pub const BBR_AUTO: BuiltIn = BuiltIn {
    name: "bbr_auto",
    registrations: [(4, "bbr_auto"), (2, "bbr_auto_6_9")],
    settable: Settable::Bbr { of: "bbr_auto" },
    ..BBR_TUNED
};

/// All built-in algorithms.
pub const BUILT_IN: [&BuiltIn; 4] = [&BBR_CPU, &BBR3, &BBR_TUNED, &BBR_AUTO];

impl BuiltIn {
    /// Returns the built-in algorithm of this name.
    pub fn find(name: &OsStr) -> Option<&'static BuiltIn> {
        BUILT_IN.into_iter().find(|algorithm| name == algorithm.name)
    }

    /// Opens the algorithm for the running kernel.
    ///
    /// # Errors
    /// If a setting is invalid, or the kernel lacks a required feature.
    pub fn open(&self, kernel: &StructOpsKernel, settings: &Settings) -> Result<Algorithm, Problem> {
        let value = self.settable.bytes(settings, self.name)?;
        if self.calls_bbr {
            kernel.need_bbr()?;
        }
        let arguments = kernel.cong_control_arguments()?;
        let mut open = object::open(self.object, self.name)?;
        self.select_registration(&mut open, arguments);
        self.set(&mut open, &value);
        let (name, place) = (self.name.to_owned(), self.name.to_owned());
        Ok(Algorithm { name, open, place, calls_bbr: self.calls_bbr })
    }

    /// Keeps only the struct_ops map that fits this kernel.
    fn select_registration(&self, open: &mut OpenObject, arguments: usize) {
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let is_chosen = self.registrations.iter().any(|(takes, name)| *takes == arguments && map.name() == *name);
            map.set_autocreate(is_chosen).expect("maps are not created yet");
        }
    }

    fn set(&self, open: &mut OpenObject, value: &[u8]) {
        let mut map = open.maps_mut().find(|map| map.name() == self.settable.section()).expect("it has this section");
        map.initial_value_mut().expect("a section of data has a value").copy_from_slice(value);
    }
}
