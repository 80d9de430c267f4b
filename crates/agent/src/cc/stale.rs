//! Finds default algorithms that are unregistered. New connections still use them, because the kernel's setting keeps a
//! reference.

use super::settings;
use crate::text::on_one_line;
use serde::Serialize;
use thalweg_store::Problem;

/// A network namespace whose default algorithm is unregistered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StaleDefault {
    /// The algorithm.
    pub name: String,
    /// Inode number of the network namespace; `None` for the namespace of this process.
    pub netns: Option<u64>,
}

/// Returns the stale defaults of this network namespace and of the others that can be entered.
///
/// # Errors
/// If the kernel's settings cannot be read.
pub fn stale_defaults() -> Result<Vec<StaleDefault>, Problem> {
    let available = settings::available().map_err(settings::unreadable)?;
    let own = settings::default().map_err(settings::unreadable)?;
    let others = thalweg_netns::other_defaults().into_iter().map(|(netns, name)| (Some(netns), name));
    let all = std::iter::once((None, own)).chain(others);
    Ok(all.filter(|(_, name)| !available.contains(name)).map(|(netns, name)| StaleDefault { name, netns }).collect())
}

/// Returns one line per stale default, with the command that replaces it.
pub fn text(stale: &[StaleDefault]) -> String {
    let available = settings::available().unwrap_or_default();
    let other =
        ["bbr", "cubic"].into_iter().find(|name| available.iter().any(|algorithm| algorithm == name)).unwrap_or("reno");
    let line = |default: &StaleDefault| {
        let name = on_one_line(&default.name);
        let (place, enter) = match default.netns {
            None => ("this network namespace".to_owned(), "run: ".to_owned()),
            Some(number) => (format!("network namespace {number}"), "run in that namespace: ".to_owned()),
        };
        format!(
            "{name}: unregistered, but still the default for new connections in {place}; \
             {enter}sudo sysctl net.ipv4.tcp_congestion_control={other}\n"
        )
    };
    stale.iter().map(line).collect()
}
