//! A host with its destinations and connections, drawn from the population.

use super::population::Population;
use crate::prefix::Prefix;
use core::net::Ipv4Addr;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use thalweg_units::{Span, Time};

/// A host with its destinations and connections, and the random numbers of the simulation, so that they are the same
/// for all policies.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) destinations: Vec<Destination>,
    /// Connections in the order in which they open.
    pub(super) connections: Vec<Connection>,
    /// Period in which the host is short of CPU.
    pub(super) busy: Option<(Time, Time)>,
}

#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub prefix: Prefix,
    kind: usize,
    change: Option<(Time, usize)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub at: Time,
    pub destination: usize,
    pub size: usize,
    /// Selects the row of the table.
    pub row: u64,
    /// Random numbers in [0, 1) that determine whether the connection is held out, and which arm it draws.
    pub holdout: f64,
    pub arm: f64,
    /// Share of the path's rate that the application uses, if the application is the limit.
    pub app_limit: Option<f64>,
}

impl Destination {
    /// Returns the kind of the path at an instant, and whether it is after the change.
    pub fn kind(&self, at: Time) -> (usize, bool) {
        match self.change {
            Some((since, kind)) if at >= since => (kind, true),
            _ => (self.kind, false),
        }
    }

    /// Returns the kinds of the path, before and after the change.
    pub fn kinds(&self) -> (usize, Option<usize>) {
        (self.kind, self.change.map(|(_, kind)| kind))
    }
}

impl World {
    /// Draws a world from a seed.
    pub fn draw(population: &Population, seed: u64) -> World {
        let mut stream = Stream(Xoshiro256PlusPlus::seed_from_u64(seed));
        let (shape, cpu) = (&population.world, &population.cpu);
        let span = Span::from_secs(shape.span_s);
        let kinds: Vec<f64> = population.kinds.iter().map(|kind| kind.share).collect();
        let sizes: Vec<f64> = population.sizes.iter().map(|size| size.share).collect();

        let mut destinations = Vec::new();
        for network in 0..shape.networks {
            let usual = stream.one_of(&kinds);
            for number in 0..shape.prefixes_per_network {
                let kind = if stream.unit() < shape.like_the_network { usual } else { stream.one_of(&kinds) };
                let changes = stream.unit() < shape.changing;
                let at = stream.between(shape.changes_from, shape.changes_to);
                let next = stream.one_of(&kinds);
                let change = (changes && next != kind).then(|| (moment(span, at), next));
                let prefix = Prefix::of(Ipv4Addr::new(10, network, number, 0).into(), 24);
                destinations.push(Destination { prefix, kind, change });
            }
        }
        let popularity: Vec<f64> = stream
            .shuffled(destinations.len())
            .into_iter()
            .map(|rank| libm::pow(rank as f64 + 1.0, -shape.popularity_exponent))
            .collect();
        let is_busy = stream.unit() < cpu.hosts_with_a_busy_time;
        let busy = is_busy.then(|| (moment(span, cpu.busy_from), moment(span, cpu.busy_to)));

        let mut connections: Vec<Connection> = (0..shape.connections)
            .map(|_| {
                let at = moment(span, stream.unit());
                let destination = stream.one_of(&popularity);
                let size = stream.one_of(&sizes);
                let is_limited = stream.unit() < shape.app_limited;
                let part = stream.between(shape.app_limited_least, shape.app_limited_most);
                Connection {
                    at,
                    destination,
                    size,
                    row: stream.0.next_u64(),
                    holdout: stream.unit(),
                    arm: stream.unit(),
                    app_limit: is_limited.then_some(part),
                }
            })
            .collect();
        connections.sort_by_key(|connection| connection.at);
        World { destinations, connections, busy }
    }

    /// Whether the host is short of CPU at an instant.
    pub fn is_busy(&self, at: Time) -> bool {
        self.busy.is_some_and(|(from, to)| from <= at && at < to)
    }
}

fn moment(span: Span, share: f64) -> Time {
    Time((span.0 as f64 * share) as u64)
}

struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Returns a random number in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns a random index, drawn in proportion to `shares`.
    fn one_of(&mut self, shares: &[f64]) -> usize {
        let mut left = self.unit() * shares.iter().sum::<f64>();
        for (number, share) in shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return number;
            }
        }
        shares.len() - 1
    }

    fn shuffled(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for last in (1..len).rev() {
            order.swap(last, (self.unit() * (last + 1) as f64) as usize);
        }
        order
    }
}
