//! The queue discipline of a guest's interface. Its module is part of the order, because few guests need one.

use super::initramfs;
use super::kernel::VmKernel;
use crate::algorithms::File;
use crate::net::Place;
use crate::vm::order::Qdisc;
use std::io;

/// Returns the order for the queue discipline of a guest's host, if it has one, and its files.
///
/// # Errors
/// If a module cannot be read.
pub(in crate::vm) fn needed(kernel: &VmKernel, place: &Place) -> io::Result<(Option<Qdisc>, Vec<File>)> {
    let Some(name) = &place.qdisc else { return Ok((None, Vec::new())) };
    let module = kernel.modules.qdisc(name);
    let (modules, files) = initramfs::modules(kernel, module.as_deref())?;
    let available = kernel.modules.qdiscs().map(str::to_owned).collect();
    let qdisc = Qdisc { host: place.host.clone(), name: name.clone(), module, modules, available };
    Ok((Some(qdisc), files))
}
