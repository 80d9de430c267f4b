"""Number of repetitions of a candidate, and the selection of the best one."""

from pathlib import Path

import pytest
from small_search import searched
from thalweg import engine
from thalweg.report.text.labels import NOTHING
from thalweg.search.candidates import Candidate, front, reason_to_stop
from thalweg.search.outcome import Outcome, best_table
from thalweg.search.planning import Planner
from thalweg.search.table import Search
from thalweg.search.verifying import winners

TWO = """[{ measure = "goodput", of = "ours", goal = "maximise" }, { measure = "queueing_delay", goal = "minimise" }]"""


@pytest.fixture
def one(tmp_path: Path) -> Search:
    return searched(tmp_path, more='constraints = ["harm(theirs) <= 0.5"]')


@pytest.fixture
def two(tmp_path: Path) -> Search:
    return searched(tmp_path, objectives=TWO)


def candidate(number: int, *values: list[float], stopped: str = "") -> Candidate:
    return Candidate(number, {"path.buffer": f"{number}bdp"}, values, stopped)


def test_only_clearly_worse_candidates_stop(one: Search) -> None:
    best = candidate(1, [10.0, 11.0, 12.0, 11.0], [0.1, 0.1, 0.1, 0.1])
    worse = candidate(2, [8.0, 9.1, 9.9], [0.1, 0.1, 0.1])
    unclear = candidate(3, [8.0, 13.0, 10.0], [0.1, 0.1, 0.1])
    better = candidate(4, [20.0, 21.0, 22.0], [0.1, 0.1, 0.1])
    assert reason_to_stop(worse, [best], one) == "worse than 1"
    assert reason_to_stop(unclear, [best], one) == ""
    assert reason_to_stop(better, [best], one) == ""


def test_pairing_by_seed_reveals_a_difference(one: Search) -> None:
    """Repetitions share seeds, so their differences vary less than their values."""
    best = candidate(1, [10.0, 20.0, 30.0], [0.1] * 3)
    assert reason_to_stop(candidate(2, [9.0, 19.1, 28.9], [0.1] * 3), [best], one) == "worse than 1"


def test_a_clear_violation_stops_once_another_candidate_is_feasible(one: Search) -> None:
    breaks = candidate(2, [99.0, 98.0, 99.0], [0.8, 0.81, 0.82])
    unclear = candidate(3, [99.0, 98.0, 99.0], [0.3, 0.9, 0.6])
    keeps = candidate(1, [10.0, 11.0, 12.0], [0.1, 0.1, 0.1])
    assert reason_to_stop(breaks, [], one) == ""
    assert reason_to_stop(breaks, [keeps], one) == "breaks harm(theirs) <= 0.5"
    assert reason_to_stop(unclear, [keeps], one) == ""


def test_with_several_objectives_only_dominated_candidates_stop(two: Search) -> None:
    best = candidate(1, [10.0, 11.0, 12.0], [1.0, 1.1, 1.2])
    worse_in_one = candidate(2, [5.0, 6.1, 7.0], [0.9, 1.2, 1.1])
    worse_in_both = candidate(3, [5.0, 6.1, 7.0], [2.0, 2.2, 2.2])
    assert reason_to_stop(worse_in_one, [best], two) == ""
    assert reason_to_stop(worse_in_both, [best], two) == "worse than 1"


def test_the_front_contains_the_non_dominated_candidates(two: Search) -> None:
    fast, balanced, short = candidate(0, [10.0], [3.0]), candidate(1, [8.0], [2.0]), candidate(2, [5.0], [1.0])
    dominated, stopped = candidate(3, [7.0], [2.5]), candidate(4, [99.0], [0.1], stopped="worse than 1")
    assert [member.number for member in front([fast, balanced, short, dominated, stopped], two)] == [0, 1, 2]


def test_the_best_of_one_objective_satisfy_every_constraint(one: Search) -> None:
    candidates = [candidate(number, [float(number)], [0.9 if number == 5 else 0.1]) for number in range(6)]
    assert [winner.number for winner in winners(candidates, one)] == [4, 3, 2]


def test_a_missing_value_does_not_break_other_pairs(one: Search) -> None:
    best = candidate(1, [10.0, 11.0, 12.0, 13.0], [0.1] * 4)
    gap = Candidate(2, {}, [[5.0, None, 7.1, 8.0], [0.1] * 4])
    assert gap.estimates[0] is not None
    assert gap.estimates[0].n == 3
    assert reason_to_stop(gap, [best], one) == "worse than 1"


def test_known_values_of_a_default_that_lacks_another_objective_are_shown(two: Search) -> None:
    capabilities = engine.capabilities("sim")
    planner = Planner(two, capabilities.engines["sim"], capabilities)
    default = Candidate(None, {}, [[9e6, 9e6], [None, None]], failed="no value of mean queueing_delay")
    headings, (row,) = best_table(Outcome(planner, default, []))
    cells = dict(zip(headings, row, strict=True))
    assert [cells[name] for name in headings if "goodput" in name] == ["9.00 ± 0.00"]
    assert [cells[name] for name in headings if "queueing_delay" in name] == [NOTHING]
