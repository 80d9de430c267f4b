//! `cc list`: lists the available algorithms.

use super::kernel::{self, StructOpsKernel};
use super::registered::Registered;
use super::settings;
use super::stale::{self, StaleDefault, stale_defaults};
use crate::requirements::{self, FILES_OF_CC};
use serde::Serialize;
use thalweg_store::Problem;

#[derive(Serialize)]
struct Algorithms {
    algorithms: Vec<Algorithm>,
    stale_defaults: Vec<StaleDefault>,
}

#[derive(Serialize)]
struct Algorithm {
    name: String,
    /// Whether the algorithm is written in eBPF; `None` without the permission to list eBPF algorithms.
    is_ebpf: Option<bool>,
    is_default: bool,
    is_allowed: bool,
}

/// Returns the available algorithms as text or JSON.
///
/// # Errors
/// If the kernel's settings cannot be read, or the limit of open files is too low.
pub fn list(json: bool) -> Result<String, Problem> {
    requirements::check_files(FILES_OF_CC)?;
    let (available, allowed) =
        (settings::available().map_err(settings::unreadable)?, settings::allowed().map_err(settings::unreadable)?);
    let default = settings::default().map_err(settings::unreadable)?;
    // A kernel without struct_ops has no registrations.
    let ebpf: Option<Vec<String>> = kernel::check_rights().is_ok().then(|| {
        let registered = StructOpsKernel::probe().map(|kernel| Registered::all(&kernel)).unwrap_or_default();
        registered.into_iter().filter(Registered::is_registered).map(|algorithm| algorithm.name).collect()
    });
    let algorithms = available.into_iter().map(|name| Algorithm {
        is_ebpf: ebpf.as_ref().map(|names| names.contains(&name)),
        is_default: name == default,
        is_allowed: allowed.contains(&name),
        name,
    });
    let algorithms = Algorithms { algorithms: algorithms.collect(), stale_defaults: stale_defaults()? };
    if json {
        return Ok(format!("{:#}\n", serde_json::to_value(&algorithms).expect("plain values")));
    }
    Ok(text(&algorithms.algorithms) + &stale::text(&algorithms.stale_defaults))
}

fn text(algorithms: &[Algorithm]) -> String {
    let mut text = String::new();
    for algorithm in algorithms {
        let kind = match algorithm.is_ebpf {
            Some(true) => "eBPF",
            Some(false) => "kernel",
            None => "-",
        };
        let mut notes = Vec::new();
        if algorithm.is_default {
            notes.push("the default for new connections");
        }
        if !algorithm.is_allowed {
            notes.push("only root may choose it");
        }
        text += format!("{:<16}{kind:<8}{}", algorithm.name, notes.join(", ")).trim_end();
        text.push('\n');
    }
    if algorithms.iter().any(|algorithm| algorithm.is_ebpf.is_none()) {
        text += "(run this as root to see which of them are eBPF)\n";
    }
    text
}
