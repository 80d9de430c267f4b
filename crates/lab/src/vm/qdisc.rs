//! The queue discipline that a guest's interface is to have. Its module comes with the order: few guests want one.

use super::algorithms::File;
use super::modules::Module;
use super::{Kernel, initramfs};
use crate::net::Place;
use serde::{Deserialize, Serialize};
use std::io;

/// What a guest is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Qdisc {
    /// Name of the host in the scenario.
    pub host: String,
    /// Its name.
    pub name: String,
    /// The module that it is in; nothing: there is none of that name, so that it is built in or missing.
    pub module: Option<String>,
    /// That module and those that it needs, which come with the order.
    pub modules: Vec<Module>,
    /// Those that the kernel has as modules.
    pub others: Vec<String>,
}

/// What the guest of a host is told of its queue discipline, if it is to have one, and the files for it.
///
/// # Errors
/// A module cannot be read.
pub(super) fn needed(kernel: &Kernel, place: &Place) -> io::Result<(Option<Qdisc>, Vec<File>)> {
    let Some(name) = &place.qdisc else { return Ok((None, Vec::new())) };
    let module = kernel.modules.qdisc(name);
    let (modules, files) = kernel
        .modules
        .read(module.as_deref())?
        .into_iter()
        .map(|(module, bytes)| (module.clone(), (initramfs::module_place(&module.name), bytes)))
        .unzip();
    let others = kernel.modules.qdiscs().map(str::to_owned).collect();
    let qdisc = Qdisc { host: place.host.clone(), name: name.clone(), module, modules, others };
    Ok((Some(qdisc), files))
}
