//! The engines: one file each, and the list of them.

mod kernel;
mod sim;
mod uml;
mod vm;

use crate::engine::Engine;

/// Every engine, the default first.
pub const ENGINES: &[&dyn Engine] = &[&sim::SimEngine, &kernel::KernelEngine, &uml::UmlEngine, &vm::VmEngine];

/// Returns the engine of this name.
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.name() == name)
}
