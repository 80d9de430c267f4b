//! Samples the connections of network namespaces. A socket always queries the namespace in which it was opened,
//! whichever process holds it.

use crate::diag::{Survey, Surveyed};
use crate::error::Error;
use serde::Serialize;
use std::io;

/// A sampled network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// Inode number of the namespace, as `lsns` shows it.
    pub netns: u64,
    /// Name for the namespace, such as a container or unit in it; `None` if unknown.
    pub name: Option<String>,
    /// Whether it is the namespace of this process.
    pub own: bool,
    /// Established connections at the end.
    pub established: usize,
}

/// Namespaces that could not be sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Their names, or inode numbers if a name is unknown.
    pub namespaces: Vec<String>,
    /// Number of processes whose network namespace is unknown, and may be another one.
    pub hidden_processes: usize,
}

/// Surveys of the network namespaces that this process may enter.
#[derive(Debug)]
pub(super) struct Surveys {
    open: Vec<(Namespace, Survey)>,
    missed: Missed,
}

impl Surveys {
    /// Opens a survey in each namespace.
    ///
    /// # Errors
    /// If the kernel does not support sock_diag.
    pub fn open() -> Result<Surveys, Error> {
        let names = thalweg_netns::names();
        let namespace =
            |netns: u64, own: bool| Namespace { netns, name: names.get(&netns).cloned(), own, established: 0 };
        let mut open = vec![(namespace(thalweg_netns::own().unwrap_or_default(), true), Survey::open()?)];
        let other_namespaces = thalweg_netns::others();
        let mut missed = Missed { namespaces: Vec::new(), hidden_processes: other_namespaces.hidden };
        for other in other_namespaces.found {
            let entry = namespace(other.number(), false);
            match other.within(|| Survey::open().map_err(io::Error::other)) {
                Ok(survey) => open.push((entry, survey)),
                Err(_) => missed.namespaces.push(entry.name.unwrap_or_else(|| entry.netns.to_string())),
            }
        }
        Ok(Surveys { open, missed })
    }

    /// Passes the established connections, each with the number of its network namespace.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is malformed.
    pub fn dump(&mut self, each: &mut dyn FnMut(u64, Surveyed)) -> Result<(), Error> {
        self.open
            .iter_mut()
            .try_for_each(|(namespace, survey)| survey.dump(&mut |connection| each(namespace.netns, connection)))
    }

    /// Returns the namespaces that were sampled, and those that were not.
    pub fn end(self, established_in: impl Fn(u64) -> usize) -> (Vec<Namespace>, Missed) {
        let ended = |(namespace, _): (Namespace, Survey)| Namespace {
            established: established_in(namespace.netns),
            ..namespace
        };
        (self.open.into_iter().map(ended).collect(), self.missed)
    }
}
