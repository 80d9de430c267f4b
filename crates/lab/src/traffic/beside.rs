//! Additional threads of a host that sends: sampling, and the UDP background.

use crate::clock::Clock;
use crate::diag::Sampler;
use crate::error::Error;
use crate::traffic::Part;
use crate::traffic::background::Background;
use crate::traffic::sampling::{Instants, Samples, Sampling};
use crate::traffic::socket::ports::Ports;
use std::sync::Arc;
use thalweg_plan::plan::Experiment;
use thalweg_units::{Span, Time};

/// The threads before their start.
#[derive(Debug)]
pub(super) struct Prepared {
    sampler: Option<Sampler>,
}

/// The running threads.
#[derive(Debug)]
pub(super) struct Beside {
    sampling: Option<Sampling>,
    background: Option<Background>,
}

impl Prepared {
    /// Prepares sampling, if the experiment requests it and the host sends flows.
    ///
    /// # Errors
    /// If the kernel refuses inet_diag.
    pub(super) fn new(experiment: &Experiment, flows: &[usize]) -> Result<Prepared, Error> {
        let wants_samples = experiment.sample_interval_ns > Span::ZERO && !flows.is_empty();
        Ok(Prepared { sampler: wants_samples.then(|| Sampler::open(experiment.ipv6)).transpose()? })
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// If the system refuses to create a thread or a socket.
    pub(super) fn start(
        self,
        experiment: &Experiment,
        ports: &Arc<Ports>,
        part: &Part,
        clock: Clock,
    ) -> Result<Beside, Error> {
        let instants = Instants {
            clock,
            interval: experiment.sample_interval_ns,
            last: experiment.duration_ns.map(|duration| Time::ZERO + duration),
        };
        let background = match part.background {
            Some(to) => Background::start(experiment, part.is_receiver(), to, clock)?,
            None => None,
        };
        let start = |sampler| Sampling::start(sampler, Arc::clone(ports), instants);
        Ok(Beside { sampling: self.sampler.map(start).transpose()?, background })
    }
}

impl Beside {
    /// Stops the threads; returns their measurements and the samples.
    ///
    /// # Errors
    /// If a sample failed.
    pub(super) fn finish(self) -> Result<Samples, Error> {
        let background = self.background.map(Background::finish).unwrap_or_default();
        let mut samples = self.sampling.map_or_else(|| Ok(Samples::default()), Sampling::finish)?;
        samples.measured.extend(background);
        Ok(samples)
    }
}
