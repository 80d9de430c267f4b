"""Checks: their syntax, and when a bound holds, is violated or is undecided."""

from pathlib import Path

import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg.checks import Check, Outcome, TermError, judge, parse_all
from thalweg.errors import ThalwegErrors
from thalweg.results import open_run

FLOWS = ["ours", "base"]
POINTS = [{"path.rtt": rtt, "flow.ours.count": count} for rtt in ("20ms", "50ms") for count in (1, 2)]

MISTAKES = {
    "unknown flow": ("goodput(our) > 1Mbps", "no flow `our`", "`ours`"),
    "unknown measure": ("goodputt(ours) > 1Mbps", "no measure `goodputt`", "`goodput`"),
    "measure of the path": ("utilisation(ours) > 0.9", "a measure of the path", "without a flow"),
    "no flow": ("goodput > 1Mbps", "`goodput` is a measure of a flow", "goodput(ours)"),
    "no comparison": ("goodput(ours)", "does not compare two values", "goodput(ours) > 0.9"),
    "one side": ("goodput(ours) >", "does not compare two values", "goodput(ours) > 0.9"),
    "equality": ("goodput(ours) == 1Mbps", "`==` is not a bound", "goodput(ours) <= 1Mbps"),
    "no measure": ("2 > 1", "names no measure", "goodput(ours)"),
    "units": ("goodput(ours) > rtt_mean(base)", "is in bit/s, and `rtt_mean(base)` is in s", "5Mbps"),
    "sum of units": ("goodput(ours) + 5ms > 0", "the terms of a sum have different units", "equal units"),
    "no product sign": ("goodput(ours) > 0.9 goodput(base)", "is not arithmetic", "write *"),
    "a size": ("goodput(ours) > 5MB", "`5MB` is not a number, a rate or a time", "5Mbps"),
    "a key that is not swept": ("goodput(ours, path.rate=5Mbps) > 0", "`path.rate` is not a key", "path.rtt"),
    "a value that is not swept": ("goodput(ours, path.rtt=1s) > 0", "`path.rtt` is never `1s`", "20ms, 50ms"),
    "two flows": ("goodput(ours, base) > 0", "several flows", "one flow"),
    "a call of Python": ("__import__('os').system('true') > 0", "there is no measure", "goodput"),
    "an attribute": ("goodput(ours).real > 0", "something other than arithmetic", "goodput"),
    "a placeholder": ("_0 > goodput(ours)", "there is no measure `_0`", "goodput"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str) -> None:
    text, message, advice = MISTAKES[name]
    with pytest.raises(ThalwegErrors) as caught:
        parse_all([text], FLOWS, dict(enumerate(POINTS)))
    assert message in caught.value.text()
    assert advice in caught.value.text()
    assert "--check" in caught.value.text()


def test_mistakes_are_reported_together() -> None:
    with pytest.raises(ThalwegErrors) as caught:
        parse_all(["goodput(x) > 1", "jain > 90%", "nonsense"], FLOWS, {0: {}})
    assert len(caught.value.errors) == 2


@pytest.mark.parametrize(
    ("text", "values", "sides"),
    [
        ("goodput(ours) > 0.9 * goodput(base)", [8e6, 10e6], (8e6, 9e6)),
        ("rtt_p95(ours) <= 60ms", [0.05], (0.05, 0.06)),
        ("goodput(ours) ≥ 5.5Mbps", [6e6], (6e6, 5.5e6)),
        ("min(goodput(ours), goodput(base)) / max(goodput(ours), goodput(base)) >= 80 %", [8e6, 10e6], (0.8, 0.8)),
        ("goodput(ours) * rtt_mean(base) > 1Mbps * 10ms", [2e6, 0.1], (2e5, 1e4)),
        ("-drops > -1e3", [5.0], (-5.0, -1000.0)),
    ],
)
def test_arithmetic_has_units(text: str, values: list[float], sides: tuple[float, float]) -> None:
    check = Check.parse(text, FLOWS)
    (bound,) = check.bounds
    term_values = dict(zip(check.terms, values, strict=True))
    assert (bound.left.value(term_values), bound.right.value(term_values)) == pytest.approx(sides)


def test_a_check_holds_at_every_combination_of_free_keys() -> None:
    points = dict(enumerate(POINTS))
    everywhere = Check.parse("goodput(ours) > 1Mbps", FLOWS, POINTS)
    assert len(everywhere.places(points)) == 4
    across = Check.parse("goodput(ours, path.rtt=0.05s) > goodput(ours, path.rtt=20ms)", FLOWS, POINTS)
    assert [dict(place.point) for place in across.places(points)] == [{"flow.ours.count": 1}, {"flow.ours.count": 2}]
    assert [list(place.experiments.values()) for place in across.places(points)] == [[2, 0], [3, 1]]
    one = Check.parse("goodput(ours, path.rtt=50ms, flow.ours.count=2) > 1Mbps", FLOWS, POINTS)
    assert [list(place.experiments.values()) for place in one.places(points)] == [[3]]


def test_a_measure_at_a_point_missing_from_the_rows_is_refused() -> None:
    rows = {0: {"path.rtt": "20ms", "path.loss": 0.1}, 1: {"path.rtt": "50ms", "path.loss": 0.2}}
    check = Check.parse("goodput(ours) > goodput(ours, path.rtt=20ms)", FLOWS, list(rows.values()))
    with pytest.raises(TermError, match=r"no point path.rtt = 20ms, path.loss = 0.2"):
        check.places(rows)


def judged(folder: Path, text: str, ours: list[list[float]], base: float = 10.0, **changes: object) -> Outcome:
    """Judge a check of a run; `ours` has the goodputs of a flow in Mbit/s, by point and repetition."""
    points = [{"path.rtt": f"{10 * (number + 1)}ms"} for number in range(len(ours))]
    synthetic = SyntheticRun(
        folder / "run",
        [
            experiment(number, n, sweep=points[number], flows=[flow("ours"), flow("base")], **changes)
            for number, values in enumerate(ours)
            for n in range(len(values))
        ],
    )
    for number, values in enumerate(ours):
        for n, value in enumerate(values):
            for name, rate in (("ours", value), ("base", base)):
                synthetic.transfer(number, n, name, end_us=10_000_000, acked_bytes=round(rate * 1e7 / 8))
    (outcome,) = judge(open_run(synthetic.write()), parse_all([text], FLOWS, dict(enumerate(points))))
    return outcome


ABOVE = "goodput(ours) > 0.9 * goodput(base)"


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ([9.6, 9.7, 9.8], "holds"),
        ([8.1, 8.2, 8.3], "does not hold"),
        ([8.5, 9.2, 9.9], "not settled"),
        ([9.9], "not settled"),
        ([9.9, 9.9, 9.9], "not settled"),  # the repetitions are copies of one another
    ],
)
def test_verdicts_are_decided_by_intervals(tmp_path: Path, ours: list[float], verdict: str) -> None:
    assert judged(tmp_path, ABOVE, [ours]).verdict == verdict


def test_too_few_repetitions_are_reported_with_the_required_number(tmp_path: Path) -> None:
    """The interval of three values is 0.2 + 4.30 s / sqrt(3), so (1.74 / 0.2)^2 times as many repetitions are
    needed.
    """
    reason = judged(tmp_path, ABOVE, [[8.5, 9.2, 9.9]]).finding.reason
    assert reason == "too few repetitions; about 273 would suffice"
    assert "--repetitions" in judged(tmp_path / "one", ABOVE, [[9.9]]).finding.reason
    assert "start_jitter" in judged(tmp_path / "copies", ABOVE, [[9.9, 9.9]]).finding.reason
    assert "too close" in judged(tmp_path / "close", ABOVE, [[8.0, 9.001, 10.0]]).finding.reason


def test_common_variation_of_repetitions_cancels(tmp_path: Path) -> None:
    """The spread of `ours` is 5 Mbit/s; that of its difference from 90 % of itself is a tenth."""
    check = "goodput(ours) > 0.9 * goodput(ours) + 0.1Mbps"
    assert judged(tmp_path, check, [[5.0, 10.0, 15.0]]).verdict == "not settled"
    assert judged(tmp_path / "more", check, [[8.0, 10.0, 12.0]]).verdict == "holds"


def test_one_failing_point_fails_the_check_and_is_shown(tmp_path: Path) -> None:
    outcome = judged(tmp_path, ABOVE, [[9.6, 9.7, 9.8], [7.1, 7.2, 7.3], [8.1, 8.2, 8.3]])
    assert (outcome.verdict, outcome.places, dict(outcome.finding.point)) == ("does not hold", 3, {"path.rtt": "20ms"})


def test_a_random_difference_at_one_of_many_points_does_not_fail_the_check(tmp_path: Path) -> None:
    """A single 95 % interval just below the bound is significant; among twenty it may be random."""
    low = [8.75, 8.79, 8.83]
    assert judged(tmp_path, ABOVE, [low]).verdict == "does not hold"
    assert judged(tmp_path / "many", ABOVE, [low, *[[9.6, 9.7, 9.8]] * 19]).verdict == "not settled"


def test_a_point_without_a_value_is_inconclusive(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "queueing_delay < 20ms", [[9.0, 9.1, 9.2]])
    assert outcome.verdict == "not settled"
    assert "queueing_delay" in outcome.finding.reason


def test_an_equality_without_spread_keeps_a_bound_that_includes_it(tmp_path: Path) -> None:
    assert judged(tmp_path, "timeouts(ours) <= 0", [[9.6, 9.7, 9.8]]).verdict == "holds"
    assert judged(tmp_path / "strict", "timeouts(ours) < 0", [[9.6, 9.7, 9.8]]).verdict == "does not hold"
