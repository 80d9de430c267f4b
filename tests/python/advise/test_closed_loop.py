"""The loop from records to advice to a policy is closed: simulations with the policy confirm the predicted gain.

A synthetic PoP is composed of runs of the simulator, and its records are evaluated. The resulting policy is simulated
with other seeds: each network's connections get the algorithm of the first matching rule. Their gain over the default
is compared with the prediction from the records.

Records are drawn from two connections of each path, size and algorithm, and so is each simulation, so both depend on
the selection. An interval from records cannot include this variation; the simulations measure it. A prediction is
therefore correct if it differs from the simulations' mean by at most the combined width of both intervals (a prediction
interval of a new run, Student's t).
"""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from thalweg import engine, plan, scenario, synth
from thalweg.advise import Answer, Effect, Question, advise
from thalweg.advise.answers import policy_rules
from thalweg.results import open_run
from thalweg.run import execute
from thalweg.scenario.document import READY_MADE
from thalweg.synth.pool import Pool, pool_of
from thalweg.synth.simulate import QUICK

ROWS = 600_000
PLAYS = 4
METRICS = {"completion_time": "fct_us", "throughput": "goodput_bps"}
"""Metrics of the advice, with their names in the truth."""

CLASS_OF = {f"AS{kind.asn}": kind.name for kind in synth.CLASSES if kind.cgroup != "/system.slice/fill.service"}
"""Networks that consist of one class each; the CDN's own network contains two classes."""

Table = dict[str, Any]


@dataclass(frozen=True)
class Loop:
    """Results of the closed loop."""

    answer: Answer
    policy: Table
    truth: Table
    """Truth of the PoP of the records."""
    plays: list[Table]
    """Truths of the PoP with other seeds."""


def algorithm(policy: Table, asn: str) -> str:
    """Return the algorithm of the first rule that matches a network."""
    for rule in policy.get("rules", []):
        if asn in rule["when"]["as"]:
            return str(rule["algorithm"])
    return str(policy["default"])


def replay(kind: synth.PathClass, arms: list[str], seed: int, folder: Path) -> Pool:
    """Simulate a class's connections with the algorithms."""
    capabilities = engine.capabilities()
    changes = QUICK | {"seed": seed, "flow.object.cc": arms}
    document = scenario.load(READY_MADE / "cdn" / f"{kind.name}.toml", changes)
    scenario_plan = plan.make(document, capabilities.engines["sim"], capabilities.engines)
    assert not execute(scenario_plan, folder, binary=capabilities.binary).failed
    return pool_of(open_run(folder), kind)


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder = tmp_path_factory.mktemp("pop")
    pools = synth.simulate(folder / "runs", quick=True)
    settings = synth.Settings(ROWS)
    world = synth.make(settings, pools)
    synth.write(world, folder)
    answer = advise([folder / synth.RECORDS], Question(segments=("as",)), table=folder / synth.PREFIXES)
    (folder / "policy.toml").write_text(policy_rules.text(answer))
    policy = tomllib.loads((folder / "policy.toml").read_text())
    default = str(policy["default"])
    plays = []
    for number in range(PLAYS):
        played = dict(pools)
        for asn, name in CLASS_OF.items():
            chosen = algorithm(policy, asn)
            if chosen != default:
                kind = next(path_class for path_class in synth.CLASSES if path_class.name == name)
                seed = 1000 + number
                played[name] = replay(kind, [default, chosen], seed, folder / f"play-{number}-{name}")
        plays.append(synth.truth(synth.make(settings, played)))
    return Loop(answer, policy, synth.truth(world), plays)


def log_ratio(truth: Table, name: str, metric: str) -> float:
    """Return the logarithm of the ratio of a class's medians, treatment over control."""
    (segments,) = (
        segment for segment in truth["segments"] if (segment["class"], segment["metric"]) == (name, METRICS[metric])
    )
    return math.log(segments["ratio_of_medians"])


def test_the_policy_changes_only_the_recommended_networks(loop: Loop) -> None:
    named = {part.title for part in loop.answer.parts if part.verdict == "bbr"}
    assert "AS64498" in named, "AS 1, far away and lossy"
    assert {part.title for part in loop.answer.parts if algorithm(loop.policy, part.title) == "bbr"} == named


def effects(answer: Answer) -> Iterator[tuple[str, str, Effect]]:
    """Yield the predictions: class, metric, and the effect on the median."""
    for part in answer.parts:
        for metric, comparison in part.comparisons.items():
            if part.title in CLASS_OF and comparison.difference and comparison.difference.median:
                yield CLASS_OF[part.title], metric, comparison.difference.median


def max_missed(looks: int) -> int:
    """Return the maximum number of `looks` 95 % intervals that miss, with a probability of 99 % if they are correct."""
    return int(stats.binom.ppf(0.99, looks, 0.05))


def test_gains_on_the_recorded_runs_lie_within_their_intervals(loop: Loop) -> None:
    predicted = list(effects(loop.answer))
    assert len(predicted) == 2 * len(CLASS_OF)
    missed = [
        segment for segment in predicted if not segment[2].overlaps(math.exp(log_ratio(loop.truth, *segment[:2])))
    ]
    assert len(missed) <= max_missed(len(predicted)), missed


def test_switched_networks_gain_as_predicted(loop: Loop) -> None:
    changed = {CLASS_OF[step.part.title] for step in loop.answer.rollout}
    predicted = [segment for segment in effects(loop.answer) if segment[0] in changed]
    assert predicted
    missed = []
    for name, metric, effect in predicted:
        played = [log_ratio(truth, name, metric) for truth in loop.plays]
        mean = sum(played) / PLAYS
        variance = sum((segment - mean) ** 2 for segment in played) / (PLAYS - 1)
        of_plays = stats.t.ppf(0.975, PLAYS - 1) * math.sqrt(variance * (1 + 1 / PLAYS))
        of_records = math.log(effect.high / effect.low) / 2
        if abs(math.log(effect.ratio) - mean) > math.hypot(of_records, of_plays):
            missed.append((name, metric, effect, played))
    assert len(missed) <= max_missed(len(predicted)), missed


def test_switched_networks_gain_in_every_replay(loop: Loop) -> None:
    assert loop.answer.rollout
    for step in loop.answer.rollout:
        sign = -1 if step.metric == "completion_time" else 1
        gains = [sign * log_ratio(truth, CLASS_OF[step.part.title], step.metric) for truth in loop.plays]
        assert all(gain > 0 for gain in gains), (step.part.title, gains)
