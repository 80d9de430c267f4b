//! Simulates a policy in a world.

use super::contender::{Contender, Player};
use super::population::Population;
use super::score::Score;
use super::table::{Row, Table};
use super::world::{Connection, World};
use crate::arm::{ArmId, Arms};
use crate::guard::Host;
use crate::objective::Objective;
use crate::outcome::{Class, Direction, Group, Loss, Outcome};
use crate::prefix::Prefix;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

/// Maximum difference to the best arm for a good choice, as a difference of rewards.
const GOOD: f64 = 0.05;

/// A choice has settled when at least `SETTLED` of the next `SETTLED_OF` connections use a good arm.
const SETTLED_OF: usize = 20;
const SETTLED: usize = 16;

/// Minimum number of choices for a destination for measuring when they settle.
const MIN_CONNECTIONS: usize = 2 * SETTLED_OF;

/// Minimum size of transfers for which the harm to competing connections is measured.
const HARMFUL_FROM: Bytes = Bytes(1_000_000);

/// Inputs of the simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    population: Population,
    table: Table,
    arms: Arms,
    objective: Objective,
    /// Mean rewards by kind, CPU state and arm: of the arm alone, and if it is replaced by BBR after losses.
    means: Vec<[f64; 2]>,
}

struct Start {
    prefix: Prefix,
    kind: usize,
    is_busy: bool,
    arm: ArmId,
    is_held_out: bool,
}

/// An open connection: the time at which it closes, and its number.
type Open = Reverse<(Time, usize)>;

impl Simulation {
    /// Creates a simulation from the contents of a population file and an outcomes file.
    ///
    /// # Errors
    /// If they are invalid or inconsistent; the error is a sentence.
    pub fn new(population: &str, outcomes: &str, objective: Objective) -> Result<Simulation, String> {
        let population = Population::parse(population)?;
        let table = Table::parse(outcomes, &population)?;
        let names: Vec<&str> = population.arms.iter().map(String::as_str).collect();
        let arms = Arms::named(&names, &population.default_arm).map_err(|error| error.to_string())?;
        let mut simulation = Simulation { population, table, arms, objective, means: Vec::new() };
        for kind in 0..simulation.population.kinds.len() {
            for is_busy in [false, true] {
                for arm in 0..simulation.arms.len() {
                    let means = simulation.mean(kind, is_busy, ArmId(arm as u8));
                    simulation.means.push(means);
                }
            }
        }
        Ok(simulation)
    }

    /// Returns the arms of the population.
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// Returns the objective.
    pub fn objective(&self) -> &Objective {
        &self.objective
    }

    /// Returns the names of the kinds of paths.
    pub fn kinds(&self) -> Vec<&str> {
        self.population.kinds.iter().map(|kind| kind.name.as_str()).collect()
    }

    /// Returns the gain of an arm over the default on a kind of path, as a difference of mean rewards.
    pub fn gain(&self, kind: usize, is_busy: bool, arm: ArmId) -> f64 {
        self.value(kind, is_busy, arm, false) - self.value(kind, is_busy, self.arms.default(), false)
    }

    /// Simulates a policy in the world of a seed.
    pub fn play(&self, contender: &Contender, seed: u64) -> Score {
        let world = World::draw(&self.population, seed);
        let mut player = contender.player();
        let mut tally = Tally::new(self, &world, player.moves_lossy_connections());
        let mut open: BinaryHeap<Open> = BinaryHeap::new();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; world.connections.len()];
        for (number, connection) in world.connections.iter().enumerate() {
            while open.peek().is_some_and(|Reverse((at, _))| *at <= connection.at) {
                let Reverse((at, closed)) = open.pop().expect("it was just there");
                if let Some(outcome) = outcomes[closed].take() {
                    player.observe(&outcome, at);
                }
            }
            let (at, destination) = (connection.at, &world.destinations[connection.destination]);
            let is_busy = world.is_busy(at);
            player.set_host(Host { is_cpu_limited: is_busy }, at);
            let weights = player.weights(destination.prefix, Class { direction: Direction::In, size: None }, at);
            let is_held_out = connection.holdout < weights.holdout();
            let arm = if is_held_out { self.arms.default() } else { weights.draw(connection.arm) };
            let (kind, _) = destination.kind(at);
            tally.add(connection, arm, is_held_out);
            let start = Start { prefix: destination.prefix, kind, is_busy, arm, is_held_out };
            let outcome = self.outcome(connection, &start, &player);
            open.push(Reverse((Time(at.0.saturating_add(outcome.busy.0)), number)));
            outcomes[number] = Some(outcome);
        }
        tally.score()
    }

    fn outcome(&self, connection: &Connection, start: &Start, player: &Player) -> Outcome {
        let &Start { prefix, kind, is_busy, arm, is_held_out } = start;
        let row_of = |arm: ArmId| {
            let rows = self.table.rows(kind, is_busy, arm.index(), connection.size);
            rows[(connection.row % rows.len() as u64) as usize]
        };
        let first = row_of(arm);
        let loss = Loss { prefix, arm, segments_out: first.segments, retransmits: first.retransmits };
        let moved = if is_held_out { None } else { player.on_loss(&loss, connection.at) };
        let (row, arm) = moved.map_or((first, arm), |to| (mixed(&first, &row_of(to)), to));
        let acked = self.population.sizes[connection.size].bytes;
        let busy = match connection.app_limit {
            Some(part) => Span((row.fct.0 as f64 / part) as u64),
            None => row.fct,
        };
        Outcome {
            prefix,
            arm,
            group: if is_held_out { Group::HeldOut } else { Group::Treated },
            direction: Direction::In,
            acked,
            completion: connection.app_limit.is_none().then_some(row.fct),
            busy,
            is_app_limited: connection.app_limit.is_some(),
            is_cpu_limited: is_busy,
            segments: row.segments,
            retransmits: row.retransmits,
            rtt_min: Some(row.rtt_min),
            rtt_max: Some(row.rtt_p95),
            delivery_rate: Some(Rate::of(acked, busy)),
        }
    }

    /// Returns the mean rewards of an arm over sizes and rows: alone, and if it is replaced by BBR after losses.
    fn mean(&self, kind: usize, is_busy: bool, arm: ArmId) -> [f64; 2] {
        let bbr = self.arms.find("bbr");
        let mut means = [0.0; 2];
        let all: f64 = self.population.sizes.iter().map(|size| size.share).sum();
        for (number, size) in self.population.sizes.iter().enumerate() {
            let rows = self.table.rows(kind, is_busy, arm.index(), number);
            for (place, row) in rows.iter().enumerate() {
                let weight = size.share / all / rows.len() as f64;
                let is_lossy = row.retransmits.0 > row.segments.0 >> 6;
                let other = bbr.filter(|&bbr| is_lossy && bbr != arm).map(|bbr| {
                    let rows = self.table.rows(kind, is_busy, bbr.index(), number);
                    mixed(row, &rows[place % rows.len()])
                });
                means[0] += weight * self.reward(row, size.bytes);
                means[1] += weight * self.reward(&other.unwrap_or(*row), size.bytes);
            }
        }
        means
    }

    fn reward(&self, row: &Row, acked: Bytes) -> f64 {
        let outcome = Outcome {
            prefix: Prefix::of(core::net::Ipv4Addr::UNSPECIFIED.into(), 0),
            arm: ArmId(0),
            group: Group::Treated,
            direction: Direction::In,
            acked,
            completion: Some(row.fct),
            busy: row.fct,
            is_app_limited: false,
            is_cpu_limited: false,
            segments: row.segments,
            retransmits: row.retransmits,
            rtt_min: None,
            rtt_max: None,
            delivery_rate: None,
        };
        self.objective.reward(&outcome).unwrap_or(0.0)
    }

    fn value(&self, kind: usize, is_busy: bool, arm: ArmId, is_left_after_losses: bool) -> f64 {
        let place = (kind * 2 + usize::from(is_busy)) * self.arms.len() + arm.index();
        self.means[place][usize::from(is_left_after_losses)]
    }

    fn regret(&self, kind: usize, is_busy: bool, arm: ArmId, is_left_after_losses: bool) -> f64 {
        let values = self.arms.iter().map(|(arm, _)| self.value(kind, is_busy, arm, false));
        values.fold(f64::NEG_INFINITY, f64::max) - self.value(kind, is_busy, arm, is_left_after_losses)
    }
}

/// Returns a transfer that starts as one row and continues as another from its first retransmission on.
fn mixed(first: &Row, then: &Row) -> Row {
    let part = 1.0 / first.retransmits.0.max(1) as f64;
    let mix = |first: u64, then: u64| (part * first as f64 + (1.0 - part) * then as f64) as u64;
    Row {
        fct: Span(mix(first.fct.0, then.fct.0)),
        segments: Packets(mix(first.segments.0, then.segments.0)),
        retransmits: Packets(mix(first.retransmits.0, then.retransmits.0).max(1)),
        rtt_min: first.rtt_min.min(then.rtt_min),
        rtt_p95: first.rtt_p95.max(then.rtt_p95),
    }
}

struct Tally<'a> {
    simulation: &'a Simulation,
    world: &'a World,
    moves: bool,
    treated: Mean,
    all: Mean,
    busy: Mean,
    good: Mean,
    harm: Mean,
    by_kind: Vec<(f64, f64)>,
    /// Whether choices were good, by destination, before and after its change. Those of held-out connections, and while
    /// the host is short of CPU, are omitted.
    choices: Vec<[Vec<bool>; 2]>,
}

#[derive(Clone, Copy, Default)]
struct Mean {
    n: f64,
    sum: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
    }

    fn value(self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }
}

impl<'a> Tally<'a> {
    fn new(simulation: &'a Simulation, world: &'a World, moves: bool) -> Tally<'a> {
        Tally {
            simulation,
            world,
            moves,
            treated: Mean::default(),
            all: Mean::default(),
            busy: Mean::default(),
            good: Mean::default(),
            harm: Mean::default(),
            by_kind: vec![(0.0, 0.0); simulation.population.kinds.len()],
            choices: vec![[Vec::new(), Vec::new()]; world.destinations.len()],
        }
    }

    fn add(&mut self, connection: &Connection, arm: ArmId, is_held_out: bool) {
        let (kind, has_changed) = self.world.destinations[connection.destination].kind(connection.at);
        let is_busy = self.world.is_busy(connection.at);
        let choice = self.simulation.regret(kind, is_busy, arm, self.moves && !is_held_out);
        // If the application is the limit, all arms perform equally.
        let regret = if connection.app_limit.is_some() { 0.0 } else { choice };
        self.all.add(regret);
        if is_held_out {
            return;
        }
        self.treated.add(regret);
        if is_busy {
            self.busy.add(regret);
        }
        self.good.add(f64::from(choice <= GOOD));
        if self.simulation.population.sizes[connection.size].bytes >= HARMFUL_FROM {
            self.harm.add(1.0 - self.simulation.table.neighbour(kind, arm.index()));
        }
        self.by_kind[kind].0 += 1.0;
        self.by_kind[kind].1 += regret;
        if !is_busy {
            self.choices[connection.destination][usize::from(has_changed)].push(choice <= GOOD);
        }
    }

    fn score(self) -> Score {
        let mut score = Score {
            regret: self.treated.value(),
            regret_with_holdout: self.all.value(),
            regret_while_busy: (self.busy.n > 0.0).then(|| self.busy.value()),
            good: self.good.value(),
            harm: self.harm.value(),
            by_kind: self.by_kind,
            ..Score::default()
        };
        let is_bad = |kind: usize, arm: ArmId| self.simulation.regret(kind, false, arm, false) > GOOD;
        for (destination, [before, after]) in self.world.destinations.iter().zip(&self.choices) {
            let (first, second) = destination.kinds();
            if before.len() >= MIN_CONNECTIONS && is_bad(first, self.simulation.arms.default()) {
                score.settled.push(settled(before));
            }
            let Some(second) = second.filter(|_| after.len() >= MIN_CONNECTIONS) else { continue };
            let arms = self.simulation.arms.iter().map(|(arm, _)| arm);
            let best = arms.min_by(|&a, &b| {
                let regret = |arm| self.simulation.regret(first, false, arm, false);
                regret(a).total_cmp(&regret(b))
            });
            if best.is_some_and(|best| is_bad(second, best)) {
                score.settled_after_change.push(settled(after));
            }
        }
        score
    }
}

/// Returns the number of choices before they settle, or of all choices.
fn settled(choices: &[bool]) -> f64 {
    let is_settled = |next: &[bool]| next.iter().filter(|&&is_good| is_good).count() >= SETTLED;
    choices.windows(SETTLED_OF).position(is_settled).unwrap_or(choices.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_converges_once_four_fifths_of_the_later_choices_are_good() {
        let choices: Vec<bool> = (0..60).map(|number| number >= 10 && number % 10 != 0).collect();
        assert_eq!(settled(&choices), 8.0);
        assert_eq!(settled(&[false; 60]), 60.0);
    }

    #[test]
    fn a_reassigned_connection_keeps_its_earlier_losses() {
        let row = |ms, segments, retransmits| Row {
            fct: Span::from_millis(ms),
            segments: Packets(segments),
            retransmits: Packets(retransmits),
            rtt_min: Span::from_millis(10),
            rtt_p95: Span::from_millis(20),
        };
        let mix = mixed(&row(1000, 100, 10), &row(100, 90, 8));
        assert_eq!(mix.fct, Span::from_millis(190));
        assert_eq!(mix.segments, Packets(91));
    }
}
