//! `policy simulate`: simulates policies on all processors.

use crate::arguments::Simulate;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use thalweg_policy::Objective;
use thalweg_policy::simulate::{Contender, OUTCOMES, POPULATION, Score, Simulation, Spread, Summary};

/// Version of the output format.
const FORMAT: u32 = 1;

/// Seeds of the worlds on which competing policies are tuned, separate from the evaluated ones.
const TUNING: std::ops::RangeInclusive<u64> = 1_000_001..=1_000_020;

/// Simulates the requested policies.
pub fn simulate(options: &Simulate) -> Result<Value, String> {
    let retransmit_price = options.retransmit_price;
    if !(0.0..=1000.0).contains(&retransmit_price) {
        return Err(format!("--retransmit-price {retransmit_price}; expected a number from 0 to 1000"));
    }
    let objective = Objective { retransmit_price, ..Objective::default() };
    let simulation = Simulation::new(POPULATION, OUTCOMES, objective)?;
    let named: Vec<&str> = options.policies.iter().map(String::as_str).collect();
    let names = if named.is_empty() { Contender::NAMES.to_vec() } else { named };
    let chosen: Vec<_> = names
        .iter()
        .map(|name| Contender::candidates(name, &simulation).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let mut summaries = Vec::new();
    for candidates in chosen {
        let among = candidates.len();
        let contender = least_regret(&simulation, candidates);
        let scores = play(&simulation, &contender, 1..=u64::from(options.seeds));
        let kinds = simulation.kinds();
        summaries.push(Summary::of(&contender.name, contender.settings.clone(), among, &scores, &kinds));
    }
    Ok(json!({"format": FORMAT, "seeds": options.seeds, "retransmit_price": retransmit_price, "policies": summaries}))
}

/// Returns the candidate whose median regret on the tuning worlds is smallest; a single candidate is not simulated.
fn least_regret(simulation: &Simulation, mut candidates: Vec<Contender>) -> Contender {
    if candidates.len() == 1 {
        return candidates.remove(0);
    }
    let regret = |contender: &Contender| {
        let scores = play(simulation, contender, TUNING);
        Spread::of(scores.iter().map(|score| score.regret).collect()).map_or(f64::INFINITY, |spread| spread.median)
    };
    let regrets: Vec<f64> = candidates.iter().map(regret).collect();
    let best = (0..candidates.len()).min_by(|&a, &b| regrets[a].total_cmp(&regrets[b])).unwrap_or(0);
    candidates.swap_remove(best)
}

/// Simulates each world on one thread, and returns the scores in the order of the seeds.
fn play(simulation: &Simulation, contender: &Contender, seeds: std::ops::RangeInclusive<u64>) -> Vec<Score> {
    let (next, last) = (AtomicU64::new(*seeds.start()), *seeds.end());
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let work = || {
        let mut played = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                return played;
            }
            played.push((seed, simulation.play(contender, seed)));
        }
    };
    let mut played: Vec<(u64, Score)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a player that panics is a defect")).collect()
    });
    played.sort_by_key(|(seed, _)| *seed);
    played.into_iter().map(|(_, score)| score).collect()
}
