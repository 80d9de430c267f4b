"""Repetitions of a point end as soon as the intervals of all its claims are narrow enough."""

import json
from collections.abc import Sequence
from pathlib import Path

from synthetic_runs import SyntheticRun, experiment
from thalweg import analysis, engine, studies
from thalweg.errors import Exit
from thalweg.plan import Plan
from thalweg.results import open_run
from thalweg.run import Outcome
from thalweg.studies import Judged, Reproduced
from thalweg.studies.claims.models import Claim
from thalweg.studies.claims.planned_part import PlannedPart
from thalweg.studies.running.rounds import ExperimentKey, Schedule


def schedule(points: int, repetitions: int) -> Schedule:
    experiments = [experiment(point, repetition) for point in range(points) for repetition in range(repetitions)]
    return Schedule(Plan.model_validate(SyntheticRun(Path(), experiments).plan))


def claim(id: str, tolerance: float | None = 0.1) -> Claim:
    value = {"measure": "goodput", "flow": "large"}
    criteria = {"at_least": 1, "tolerance": tolerance}
    return Claim.model_validate({"id": id, "text": "", "part": "p", "value": value, "judge": criteria})


def seen(looked_at: set[int], unsure: set[int]) -> Judged:
    both = [frozenset(("p", point) for point in points) for points in (looked_at, unsure)]
    return Judged("not settled", looked_at=both[0], unsure=both[1])


def test_only_inconclusive_points_get_all_repetitions() -> None:
    plan = schedule(points=2, repetitions=6)
    assert len(plan.first(may_stop_early=True)) == 6
    judged = {"a": seen({0, 1}, {1})}
    assert plan.next("p", [claim("a")], judged) == [(1, 3), (1, 4)]
    assert plan.next("p", [claim("a")], judged) == [(1, 5)]
    assert plan.next("p", [claim("a")], judged) == []


def test_a_claim_without_tolerance_requires_all_repetitions() -> None:
    plan = schedule(points=2, repetitions=5)
    plan.first(may_stop_early=True)
    judged = {"a": seen({0, 1}, set()), "b": seen({1}, set())}
    assert plan.next("p", [claim("a"), claim("b", tolerance=None)], judged) == [(1, 3), (1, 4)]


def test_a_point_without_a_claim_gets_the_repetitions_of_the_scenario() -> None:
    plan = schedule(points=2, repetitions=4)
    plan.first(may_stop_early=True)
    assert plan.next("p", [claim("a")], {"a": seen({0}, set())}) == [(1, 3)]


def test_unneeded_repetitions_are_not_missing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run", [experiment(0, number) for number in range(5)])
    for repetition in range(3):
        run.transfer(0, repetition)
    directory = run.write()
    assert analysis.status(open_run(directory)).missing == 2
    (directory / "not-needed.json").write_text(json.dumps({"why": "enough", "experiments": [[0, 3], [0, 4]]}))
    status = analysis.status(open_run(directory))
    assert (status.missing, status.not_needed) == (0, 2)


SCENARIO = """\
name = "race"
repetitions = 9
[path]
rate = "40Mbps"
rtt = "45ms"
[[flow]]
name = "large"
cc = "cubic"
size = "30MB"
[sweep]
"path.buffer" = ["1bdp", "2bdp"]
"""

CLAIMS = """\
title = "A race"
about = "Calm in one BDP, noisy in two."
[paper]
cite = "Author"
[parts.race]
scenario = "race.toml"
[[claims]]
id = "in-time"
text = "It takes at most 2 s."
part = "race"
value = { measure = "completion_time", flow = "large" }
judge = { at_most = 2, tolerance = 0.01 }
"""


class Runner:
    """Returns synthetic measurements; Ctrl-C arrives in the round `interrupted`."""

    def __init__(self, interrupted: int | None = None) -> None:
        self.asked: list[list[ExperimentKey]] = []
        self.done: set[ExperimentKey] = set()
        self.interrupted = interrupted

    def __call__(self, planned_part: PlannedPart, directory: Path, due: Sequence[ExperimentKey]) -> Outcome:
        if len(self.asked) == self.interrupted:
            return Outcome(Exit.INTERRUPTED, experiments=len(due))
        self.asked.append(list(due))
        self.done |= set(due)
        assert planned_part.plan
        run = SyntheticRun(directory, json.loads(planned_part.plan.model_dump_json())["experiments"])
        for point, repetition in self.done:
            noise = 0.1 * (-1) ** repetition if point else 0.0
            run.transfer(point, repetition, end_us=int((1 + noise) * 1e6))
        run.write()
        return Outcome(experiments=len(due), finished=len(due))


def reproduced(tmp_path: Path, runner: Runner, claims: str = CLAIMS) -> Reproduced:
    folder = tmp_path / "race"
    folder.mkdir(exist_ok=True)
    (folder / "claims.toml").write_text(claims)
    (folder / "race.toml").write_text(SCENARIO)
    capabilities = engine.capabilities()
    planned = studies.plan(studies.load(folder), capabilities.engines["sim"], capabilities, quick=False)
    studies.run(planned, tmp_path / "runs", runner)
    return planned


def test_a_study_repeats_only_noisy_points(tmp_path: Path) -> None:
    runner = Runner()
    planned = reproduced(tmp_path, runner)
    assert [len(due) for due in runner.asked] == [6, 2, 3, 1]
    assert {point for due in runner.asked[1:] for point, _ in due} == {1}
    assert planned.judged["in-time"].verdict == "holds"
    [directory] = planned.directories.values()
    status = analysis.status(open_run(directory))
    assert (status.finished, status.not_needed, status.missing) == (12, 6, 0)


def test_existing_repetitions_count_beyond_the_current_number(tmp_path: Path) -> None:
    # Eight repetitions are enough for this tolerance, and five are not; when all eight are evaluated together, no more
    # are requested.
    claims = CLAIMS.replace("tolerance = 0.01", "tolerance = 0.2")
    runner = Runner()
    assert reproduced(tmp_path, runner, claims).experiments == 11
    assert [len(due) for due in runner.asked] == [6, 2, 3]
    again = reproduced(tmp_path, runner, claims)
    assert (again.experiments, again.judged["in-time"].n) == (11, 3), "the calm point has three"
    assert [len(due) for due in runner.asked] == [6, 2, 3]


def test_after_ctrl_c_finished_points_are_judged_and_the_command_resumes(tmp_path: Path) -> None:
    runner = Runner(interrupted=1)
    planned = reproduced(tmp_path, runner)
    assert planned.exit_code is Exit.INTERRUPTED
    assert planned.judged["in-time"].n == 3
    runner.interrupted = None
    again = reproduced(tmp_path, runner)
    assert (again.exit_code, again.is_fresh) == (Exit.FINE, False)
    assert runner.asked[1] == [(1, 3), (1, 4)], "what is there is not asked for again"
