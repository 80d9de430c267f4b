//! Thompson sampling: each arm is drawn with the probability that it is the best one, given the data.
//!
//! **Model.** The reward of a connection (see [`Objective`]) to a destination, in a class of size and direction, is
//!
//! ```text
//!   reward = level + gain of the arm + noise       noise ~ N(0, s2), s2 unknown
//!   gain of the default = 0                        gain of another arm ~ N(mean and variance from its network)
//! ```
//!
//! The level is a property of the path and has no prior, so a distant destination does not count as a bad one.
//! Destinations share information about gains and noise only. Level and gains have a posterior in closed form
//! ([`cell`]); the noise is shared by the arms of a class, with a gamma prior on its precision. The prior of a
//! destination's gains has the weighted mean of its neighbours' gains, and a variance that grows with their
//! disagreement ([`pool`]).
//!
//! **Weights** are the probabilities that each arm's gain is the largest, counted over fixed points of the posterior
//! ([`nodes`]). Drawing arms with these weights is Thompson sampling. A small part, `floor`, is divided equally among
//! all arms. If the size of a connection is not known when it opens, gains are averaged over the sizes observed at the
//! destination.
//!
//! **Forgetting.** The weight of connections decreases with each later one, and with time. If rewards deviate
//! persistently from the prediction (two-sided CUSUM), the data of the destination is dropped.
//!
//! Sources: Thompson, Biometrika 25 (1933); Russo et al., "A Tutorial on Thompson Sampling" (2018); Raj and Kalyani,
//! "Taming Non-stationary Bandits" (2017) for the discount; Page, Biometrika 41 (1954) for CUSUM; DerSimonian and Laird
//! (1986) for the pools.

mod cell;
mod nodes;
mod pool;

use crate::arm::{Arm, ArmId, Arms};
use crate::math::Z95;
use crate::objective::Objective;
use crate::outcome::{Class, Direction, Group, Outcome, Size};
use crate::policy::{ArmView, Explanation, Interval, Policy, percent};
use crate::policy_event::{Change, PolicyEvent};
use crate::prefix::{Prefix, Tree};
use crate::weights::Weights;
use cell::{Belief, Cell, Prior};
use nodes::Nodes;
use pool::Pool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thalweg_units::{Span, Time};

const CLASSES: usize = Size::ALL.len() * Direction::ALL.len();

/// Settings of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BayesSettings {
    /// Prefix lengths of destinations and networks.
    pub tree: Tree,
    /// Prior standard deviation of gains: 1 is a factor of e in time or rate.
    pub gain_sd: f64,
    /// Memory in number of connections of a class.
    pub memory: f64,
    /// Time that halves the weight of the data.
    pub half_life: Span,
    /// Share of connections that is divided equally among all arms, so that every arm is tried.
    pub floor: f64,
    /// Maximum number of destinations.
    pub most_prefixes: usize,
}

impl Default for BayesSettings {
    fn default() -> BayesSettings {
        BayesSettings {
            tree: Tree::default(),
            gain_sd: 0.5,
            memory: 200.0,
            half_life: Span::from_secs(7 * 86_400),
            floor: 0.01,
            most_prefixes: 100_000,
        }
    }
}

/// Thompson sampling, the default policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bayes {
    arms: Arms,
    objective: Objective,
    settings: BayesSettings,
    leaves: BTreeMap<Prefix, Leaf>,
    /// Pooled estimates of the destinations within each shorter prefix, by class.
    pools: BTreeMap<Prefix, Vec<Pool>>,
    #[serde(skip)]
    nodes: Nodes,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Leaf {
    cells: Vec<Option<Cell>>,
    at: Time,
}

/// Beliefs about the arms, for one class or averaged over several.
struct Blend {
    beliefs: Vec<Belief>,
    freedom: f64,
}

impl Bayes {
    /// Creates the policy without data.
    pub fn new(arms: Arms, objective: Objective, settings: BayesSettings) -> Bayes {
        Bayes { arms, objective, settings, leaves: BTreeMap::new(), pools: BTreeMap::new(), nodes: Nodes::default() }
    }

    /// Restores the learned state of another instance; returns false if its prefix lengths or objective differ.
    pub(crate) fn restore_from(&mut self, other: Bayes) -> bool {
        let is_same = self.objective == other.objective && self.settings.tree == other.settings.tree;
        if is_same {
            (self.leaves, self.pools) = (other.leaves, other.pools);
        }
        is_same
    }

    /// Returns the prior for a class of connections to `prefix`: the estimate of the networks that contain it, refined
    /// by connections of other sizes to the destination.
    fn prior(&self, prefix: Prefix, class: usize, leaf: Option<&Leaf>) -> Prior {
        let mut prior = Prior::vague(self.arms.len(), self.arms.default(), self.settings.gain_sd);
        let own = leaf.and_then(|leaf| leaf.cells[class].as_ref());
        for ancestor in self.settings.tree.ancestors(prefix) {
            if let Some(pools) = self.pools.get(&ancestor) {
                pools[class].inform(&mut prior, own.map(Cell::published));
            }
        }
        if let Some(leaf) = leaf {
            let mut siblings = Pool::new(self.arms.len());
            let is_sibling =
                |other: usize| other != class && other % Direction::ALL.len() == class % Direction::ALL.len();
            for cell in (0..CLASSES).filter(|&other| is_sibling(other)).filter_map(|other| leaf.cells[other].as_ref()) {
                siblings.replace(&[], cell.published());
            }
            siblings.inform(&mut prior, None);
        }
        prior
    }

    fn blend(&self, prefix: Prefix, class: Class, now: Time) -> Blend {
        let leaf = self.leaves.get(&prefix);
        let cell = |size: Size| leaf.and_then(|leaf| leaf.cells[number(size, class.direction)].as_ref());
        let sizes: Vec<(f64, Size)> = match class.size {
            Some(size) => vec![(1.0, size)],
            None => {
                let per_size = Size::ALL.map(|size| (cell(size).map_or(0.0, Cell::seen), size));
                let all: f64 = per_size.iter().map(|(weight, _)| weight).sum();
                if all == 0.0 {
                    Size::ALL.map(|size| (1.0 / Size::ALL.len() as f64, size)).to_vec()
                } else {
                    per_size
                        .into_iter()
                        .filter(|(weight, _)| *weight > 0.0)
                        .map(|(weight, size)| (weight / all, size))
                        .collect()
                }
            }
        };
        let mut blend = Blend { beliefs: vec![Belief::default(); self.arms.len()], freedom: 0.0 };
        for (share, size) in sizes {
            let class = number(size, class.direction);
            let prior = self.prior(prefix, class, leaf);
            let posterior = match cell(size) {
                Some(cell) => cell.posterior(&prior, self.arms.default(), self.kept(cell.at(), now)),
                None => Cell::new(&prior).posterior(&prior, self.arms.default(), 1.0),
            };
            let reference = posterior.beliefs[self.arms.default().index()].mean;
            for (sum, belief) in blend.beliefs.iter_mut().zip(&posterior.beliefs) {
                sum.mean += share * (belief.mean - reference);
                sum.variance += share * share * belief.variance;
                sum.with_level = libm::hypot(sum.with_level, share * belief.with_level);
            }
            blend.freedom += posterior.freedom;
        }
        blend
    }

    /// Returns the share of the weight that remains after the time between two instants.
    fn kept(&self, then: Time, now: Time) -> f64 {
        let half_lives = now.since(then).as_secs_f64() / self.settings.half_life.as_secs_f64().max(1.0);
        libm::exp2(-half_lives)
    }

    /// Updates a destination's estimates of a class in the networks that contain it.
    fn publish(&mut self, prefix: Prefix, class: usize) {
        let (arms, default) = (self.arms.len(), self.arms.default());
        let Some(cell) = self.leaves.get_mut(&prefix).and_then(|leaf| leaf.cells[class].as_mut()) else { return };
        let (before, after) = cell.republish(default);
        for ancestor in self.settings.tree.ancestors(prefix) {
            let pools = self.pools.entry(ancestor).or_insert_with(|| vec![Pool::new(arms); CLASSES]);
            pools[class].replace(&before, &after);
        }
    }

    fn evict(&mut self) {
        if self.leaves.len() <= self.settings.most_prefixes {
            return;
        }
        let mut by_age: Vec<(Time, Prefix)> = self.leaves.iter().map(|(&prefix, leaf)| (leaf.at, prefix)).collect();
        by_age.sort_unstable();
        for &(_, prefix) in &by_age[..by_age.len().div_ceil(8)] {
            if let Some(leaf) = self.leaves.remove(&prefix) {
                self.withdraw(prefix, &leaf);
            }
        }
    }

    /// Removes a destination's estimates from its networks.
    fn withdraw(&mut self, prefix: Prefix, leaf: &Leaf) {
        for (class, cell) in leaf.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            for ancestor in self.settings.tree.ancestors(prefix) {
                if let Some(pools) = self.pools.get_mut(&ancestor) {
                    pools[class].replace(cell.published(), &[]);
                }
            }
        }
    }

    /// Returns the weight of an arm's connections to a destination, in one direction.
    fn connections(&self, prefix: Prefix, direction: Direction, arm: ArmId) -> f64 {
        let Some(leaf) = self.leaves.get(&prefix) else { return 0.0 };
        Size::ALL
            .iter()
            .filter_map(|&size| leaf.cells[number(size, direction)].as_ref())
            .map(|cell| cell.count(arm))
            .sum()
    }

    /// Returns whether another destination of the same IP version is known.
    fn has_neighbours(&self, prefix: Prefix) -> bool {
        let largest = |prefix: Prefix| self.settings.tree.ancestors(prefix).next();
        self.leaves.keys().any(|&other| other != prefix && largest(other) == largest(prefix))
    }

    fn usual_direction(&self, prefix: Prefix) -> Direction {
        let connections = |direction: Direction| -> f64 {
            self.arms.iter().map(|(arm, _)| self.connections(prefix, direction, arm)).sum()
        };
        if connections(Direction::Out) > connections(Direction::In) { Direction::Out } else { Direction::In }
    }
}

impl Policy for Bayes {
    fn name(&self) -> &'static str {
        "bayes"
    }

    fn observe(&mut self, outcome: &Outcome, now: Time) -> Vec<PolicyEvent> {
        let Some(reward) = self.objective.reward(outcome) else { return Vec::new() };
        if outcome.group == Group::Untouched || outcome.arm.index() >= self.arms.len() {
            return Vec::new();
        }
        let prefix = self.settings.tree.leaf_of(outcome.prefix);
        let class = number(self.objective.size(outcome.acked), outcome.direction);
        let leaf = self.leaves.get(&prefix);
        let prior = self.prior(prefix, class, leaf);
        let own = leaf.and_then(|leaf| leaf.cells[class].as_ref());
        let kept = own.map_or(1.0, |cell| self.kept(cell.at(), now));
        let leaf = self.leaves.entry(prefix).or_insert_with(|| Leaf { cells: vec![None; CLASSES], at: now });
        leaf.at = now;
        let cell = leaf.cells[class].get_or_insert_with(|| Cell::new(&prior));
        cell.forget(kept * (1.0 - 1.0 / self.settings.memory.max(2.0)));
        let surprise = cell.learn(outcome.arm, reward, &prior, self.arms.default(), now);
        if surprise.is_some() {
            // A change of the path affects connections of all classes.
            let others = leaf.cells.iter_mut().enumerate().filter(|&(other, _)| other != class);
            others.filter_map(|(_, cell)| cell.as_mut()).for_each(Cell::drop_all);
            (0..CLASSES).for_each(|other| self.publish(prefix, other));
        } else {
            self.publish(prefix, class);
        }
        self.evict();
        surprise.map_or_else(Vec::new, |surprise| {
            vec![PolicyEvent { at: now, prefix: Some(prefix), change: Change::PathChanged, reason: surprise }]
        })
    }

    fn weights(&self, prefix: Prefix, class: Class, now: Time) -> Weights {
        let blend = self.blend(self.settings.tree.leaf_of(prefix), class, now);
        let wins = self.nodes.wins(&blend.beliefs, blend.freedom);
        let (floor, arms) = (self.settings.floor.clamp(0.0, 1.0), self.arms.len() as f64);
        let wishes: Vec<f64> = wins.iter().map(|win| (1.0 - floor) * win + floor / arms).collect();
        Weights::of(&wishes)
    }

    fn explain(&self, prefix: Prefix, now: Time) -> Explanation {
        let prefix = self.settings.tree.leaf_of(prefix);
        let class = Class { direction: self.usual_direction(prefix), size: None };
        let weights = self.weights(prefix, class, now);
        let blend = self.blend(prefix, class, now);
        let default = self.arms.default();
        let view = |(arm, _): (ArmId, &Arm)| {
            let belief: &Belief = &blend.beliefs[arm.index()];
            let reference = &blend.beliefs[default.index()];
            let apart = belief.with_level - reference.with_level;
            let sd = libm::sqrt(belief.variance + reference.variance + apart * apart);
            let mean = belief.mean - reference.mean;
            ArmView {
                arm,
                weight: weights.probability(arm),
                connections: self.connections(prefix, class.direction, arm),
                greedy: None,
                gain: (arm != default).then_some(Interval { mean, low: mean - Z95 * sd, high: mean + Z95 * sd }),
                cost: None,
            }
        };
        let arms: Vec<ArmView> = self.arms.iter().map(view).collect();
        let sentence = sentence(&self.arms, prefix, &arms, weights.most(), self.has_neighbours(prefix));
        Explanation { prefix, sentence, arms }
    }
}

fn sentence(arms: &Arms, prefix: Prefix, views: &[ArmView], most: ArmId, has_neighbours: bool) -> String {
    let (name, default) = (&arms.arm(most).name, &arms.arm(arms.default()).name);
    let share = percent(views[most.index()].weight);
    let all: f64 = views.iter().map(|view| view.connections).sum();
    let basis = match (all < 1.0, has_neighbours) {
        (true, true) => format!("no connection to {prefix} has closed yet, but neighbouring prefixes indicate"),
        (true, false) => {
            format!("no connection to {prefix} or a neighbouring prefix has closed yet, and the assumption is")
        }
        (false, true) => format!("{all:.0} recent connections and neighbouring prefixes indicate"),
        (false, false) => format!("{all:.0} recent connections indicate"),
    };
    let gain = |view: &ArmView| {
        let gain = view.gain.unwrap_or(Interval { mean: 0.0, low: 0.0, high: 0.0 });
        let [mean, low, high] = [gain.mean, gain.low, gain.high].map(libm::exp);
        format!("{mean:.2} times as good as {default} (95 %: {low:.2} to {high:.2})")
    };
    if most != arms.default() {
        return format!(
            "{name} gets {share} of new connections: {basis} that {name} is {}.",
            gain(&views[most.index()])
        );
    }
    let mut others: Vec<&ArmView> = views.iter().filter(|view| view.arm != most).collect();
    others.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    match others.first() {
        Some(next) => {
            let rival = &arms.arm(next.arm).name;
            format!("{name} gets {share} of new connections: {basis} that {rival} would be {}.", gain(next))
        }
        None => format!("{name} gets all connections: there is no other arm."),
    }
}

fn number(size: Size, direction: Direction) -> usize {
    size as usize * Direction::ALL.len() + direction as usize
}
