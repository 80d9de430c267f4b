//! `cc load`: registers an algorithm and, without `--keep`, waits.

use super::kernel::StructOpsKernel;
use super::object::Algorithm;
use super::registered::{Registered, State};
use super::rehearsal::rehearse;
use super::settable::Settings;
use super::{BUILT_IN, BuiltIn, settings, unload};
use crate::files;
use crate::log;
use crate::notify;
use crate::requirements::{self, FILES_OF_CC};
use libbpf_rs::{Link, MapCore, MapType, Object};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsStr;
use std::path::Path;
use thalweg_store::Problem;

/// Registers an algorithm by name or from a file. Without `keep`, it waits for SIGINT or SIGTERM, then unregisters the
/// algorithm.
///
/// # Errors
/// If the algorithm cannot be registered, the default cannot be replaced at the end, or `print` fails.
pub fn load(
    what: &OsStr,
    settings: &Settings,
    keep: bool,
    print: &mut dyn FnMut(&str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let (kernel, algorithm) = find(what, settings)?;
    let name = algorithm.name.clone();
    let earlier = Registered::find(&kernel, &name);
    check_name(&name, earlier.as_ref())?;
    let default_before = settings::default().ok();

    // Before anything is changed that a signal must undo.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| {
        Problem::failed("signals", "this process", error, "signal handlers that can be installed", "try again")
    })?;
    let with_link = !keep && kernel.has_links();
    let mut object = algorithm.load(with_link)?;
    // Only now, because the new algorithm has passed the verifier.
    if let Some(earlier) = &earlier {
        earlier.unregister()?;
        print(&format!("{name}: removed the registration that an earlier `cc load` had left\n"))?;
    }
    let mut link = register(&mut object, &name)?;
    // The default still refers to an earlier registration of this name. Setting it again selects the new one.
    if default_before.as_deref() == Some(name.as_str()) {
        let _ = settings::set_default(&name);
    }
    if keep {
        link.disconnect();
    }
    print(&format!("{name}: registered, {}\n{}", lifetime(keep, with_link), how_to_use(&name)))?;
    if keep {
        return Ok(());
    }
    notify::ready();
    wait_for_end(&mut signals, &name);
    unload::leave_default(&name, default_before.as_deref(), print)?;
    drop(link);
    print(&format!("{name}: unregistered; connections that use it keep it until they close\n"))
}

/// Opens the algorithm, and checks the kernel's features.
///
/// # Errors
/// If the algorithm cannot be opened, or the machine lacks a feature.
fn find(what: &OsStr, settings: &Settings) -> Result<(StructOpsKernel, Algorithm), Problem> {
    let built_in = BuiltIn::find(what);
    if built_in.is_none() {
        check_file(what)?;
        check_no_settings(what, settings)?;
    }
    requirements::check_files(FILES_OF_CC)?;
    let kernel = StructOpsKernel::probe()?;
    let algorithm = match built_in {
        Some(built_in) => built_in.open(&kernel, settings)?,
        None => open_file(Path::new(what))?,
    };
    Ok((kernel, algorithm))
}

/// Registers the algorithm of a loaded object. Dropping the link unregisters it, unless the link was disconnected.
///
/// # Errors
/// If the kernel rejects it.
fn register(object: &mut Object, name: &str) -> Result<Link, Problem> {
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps && map.autocreate())
        .expect("an algorithm has one such map");
    map.attach_struct_ops().map_err(|error| {
        Problem::failed(
            "kernel-refuses",
            name,
            format!("an algorithm that the kernel refuses to register: {error}"),
            "a complete tcp_congestion_ops (ssthresh, undo_cwnd, and cong_avoid or cong_control)",
            "sudo thalweg-agent cc list shows which names are taken",
        )
    })
}

fn lifetime(keep: bool, with_link: bool) -> &'static str {
    match (keep, with_link) {
        (true, _) => "until `thalweg-agent cc unload`, another `cc load` of it, or a reboot",
        (false, true) => "until this process exits (Ctrl-C, SIGTERM, or any other reason)",
        (false, false) => {
            "until this process receives Ctrl-C or SIGTERM; if it is killed, Linux before 6.4 keeps the algorithm \
             registered until the next `cc load` or `cc unload`"
        }
    }
}

fn wait_for_end(signals: &mut Signals, name: &str) {
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        log::info(&format!("{name}: SIGHUP ignored: there are no settings to reload"));
    }
}

/// Opens a user's program, after another process has opened and loaded it without a crash.
///
/// # Errors
/// If the file cannot be read, [`rehearse`] fails, or the object is not an algorithm.
fn open_file(path: &Path) -> Result<Algorithm, Problem> {
    let place = path.display().to_string();
    let bytes = files::read(path, files::SMALL).map_err(|error| {
        Problem::refused(
            "no-file",
            &place,
            error,
            "a compiled BPF object",
            "check the path; built-in algorithms, such as bbr3, need no file",
        )
    })?;
    rehearse(&bytes, &place)?;
    Algorithm::read(&bytes, &place)
}

fn check_file(what: &OsStr) -> Result<(), Problem> {
    let place = what.to_string_lossy();
    let is_name = !place.contains(['/', '.']) && !Path::new(what).exists();
    if !is_name {
        return Ok(());
    }
    let names = BUILT_IN.map(|algorithm| algorithm.name).join(", ");
    Err(Problem::refused(
        "unknown-algorithm",
        &place,
        "neither a built-in algorithm nor a file",
        &format!("{names}, or the path of a compiled BPF object"),
        "thalweg-agent cc load bbr_cpu",
    ))
}

/// Rejects settings, because the parameters of an algorithm in a file are unknown.
fn check_no_settings(what: &OsStr, settings: &Settings) -> Result<(), Problem> {
    let Some(param) = settings.keys().next() else { return Ok(()) };
    let names = BUILT_IN.map(|algorithm| algorithm.name).join(", ");
    let place = format!("--set {param}");
    let found = format!("a parameter for the file {}", what.to_string_lossy());
    Err(Problem::refused(
        "settings-of-file",
        &place,
        found,
        &format!("a built-in algorithm ({names})"),
        "omit --set and --rule",
    ))
}

/// Checks that the name is free, or registered without a link and not held by a process.
fn check_name(name: &str, earlier: Option<&Registered>) -> Result<(), Problem> {
    let held_by = |by: &str| {
        let found = format!("a name already registered by {by}");
        let hint = format!("sudo thalweg-agent cc unload {name}");
        Err(Problem::failed("already-loaded", name, found, "an unused name", &hint))
    };
    match earlier {
        Some(earlier) => match (earlier.holders().first(), &earlier.state) {
            (Some(holder), _) => held_by(&format!("{} (process {})", holder.name, holder.pid)),
            (None, State::Linked { .. }) => held_by("an unknown process, with a pinned link"),
            (None, _) => Ok(()),
        },
        None if settings::available().unwrap_or_default().iter().any(|taken| taken == name) => Err(Problem::refused(
            "name-taken",
            name,
            "the name of a kernel algorithm",
            "an unused name",
            "use the kernel's algorithm, or change .name in your source",
        )),
        None => Ok(()),
    }
}

fn how_to_use(name: &str) -> String {
    let mut text = format!(
        "  one socket           setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"{name}\", {})\n  \
           all new connections  sudo sysctl net.ipv4.tcp_congestion_control={name}\n",
        name.len()
    );
    let allowed = settings::allowed().unwrap_or_default();
    if !allowed.iter().any(|algorithm| algorithm == name) {
        text += &format!(
            "  ordinary users       may not choose it yet: sudo sysctl \
             net.ipv4.tcp_allowed_congestion_control=\"{} {name}\"\n",
            allowed.join(" ")
        );
    }
    text
}
