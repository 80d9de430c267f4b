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
    "no unit of a time": ("rtt_p95(ours) < 30", "`rtt_p95(ours)` is in s, and `30` has no unit", "`30ms` or `30s`"),
    "no unit of a rate": ("120 <= goodput(ours)", "`120` has no unit", "did you mean `120Mbps` or `120bps`?"),
    "no unit per second": ("completion_rate(ours) > 3", "is in 1/s, and `3` has no unit", "did you mean `3/s`?"),
    "no unit of a rate per copy": ("goodput(ours) / connections(ours) > 5", "`5` has no unit", "`5Mbps`"),
    "no unit of a product": ("goodput(ours) * rtt_p95(ours) < 1e6", "is in bit, and `1e6` has no", "5Mbps * 60ms"),
    "no unit of a power": ("rtt_p95(ours) ** -1 > 5", "is in 1/s, and `5` has no unit", "did you mean `5/s`?"),
    "no unit of a root": ("(rtt_p95(ours) ** 2) ** (1 / 2) > 5", "is in s, and `5` has no unit", "`5ms`"),
    "no unit of a chain": ("1Mbps < goodput(ours) < 20", "`20` has no unit", "`20Mbps`"),
    "no unit of a summand": ("goodput(ours) + 5 > goodput(base)", "one is in bit/s, another one has no unit", "equal"),
    "no unit in min": ("min(goodput(ours), 5) > 1Mbps", "the arguments of min or max", "equal units"),
    "a ratio of a rate": ("goodput(ours) > 90%", "is in bit/s, and `90%` is a ratio", "such as 5Mbps"),
    "per cent of a count": ("retransmits(ours) < 1%", "is a count, and `1%` is a ratio", "`retransmit_ratio(ours)`"),
    "per cent of packets": ("drops < 1%", "`drops` is a count, and `1%` is a ratio", "a plain number, such as 10"),
    "per cent of a sum of counts": ("drops + marks < 1%", "`drops + marks` is a count", "a plain number"),
    "per cent without its sign": (
        "retransmit_ratio(ours) < 5",
        "is at most 1, and `5` is larger",
        "did you mean `5%`?",
    ),
    "a share in per cent": ("40 < share(ours)", "`share(ours)` is at most 1", "did you mean `40%`?"),
    "division by 0": ("goodput(ours) / 0 > 3", "`goodput(ours) / 0`: it divides by 0", "goodput(ours)"),
    "division of a number by 0": ("share(ours) > 1 / (2 - 2)", "`1 / (2 - 2)` has no value: it divides by 0", "finite"),
    "infinity": ("share(ours) < 1e400", "`1e400`: a number in it is not finite", "goodput(ours)"),
    "an infinite rate": ("goodput(ours) < 1e400Mbps", "`1e400Mbps` has no value: a number in it is not", "a finite"),
    "a logarithm of 0": ("share(ours) > log(0)", "`log(0)` has no value: a root, logarithm or power", "a finite"),
    "min of one value": ("min(share(ours)) > 0.5", "`min` has the wrong number of arguments", "goodput(ours)"),
    "a long sum": ("goodput(ours) > 0bps" + " + 1bps" * 1500, "is not arithmetic", "goodput"),
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
        ("goodput(ours) - goodput(base) > 0", [5e6, 4e6], (1e6, 0.0)),
        ("max(goodput(ours) - 5Mbps, 0) >= 0.0", [4e6], (0.0, 0.0)),
        ("retransmits(ours) / transfers(ours) < 1%", [5.0, 10.0], (0.5, 0.01)),
        ("retransmits(ours) < 1% * transfers(ours)", [5.0, 10.0], (5.0, 0.1)),
        ("share(ours) > 0.9 / connections(ours)", [0.5, 2.0], (0.5, 0.45)),
        ("goodput(ours) / connections(ours) > 1Mbps", [4e6, 2.0], (2e6, 1e6)),
        ("completion_rate(ours) > 3/s", [4.0], (4.0, 3.0)),
        ("share(ours) <= 1", [0.5], (0.5, 1.0)),
        ("inflight_bdp(ours) < 2", [1.5], (1.5, 2.0)),
        ("log(goodput(ours) / goodput(base)) > 0", [5e6, 5e6], (0.0, 0.0)),
    ],
)
def test_arithmetic_has_units(text: str, values: list[float], sides: tuple[float, float]) -> None:
    check = Check.parse(text, FLOWS)
    (bound,) = check.bounds
    term_values = dict(zip(check.terms, values, strict=True))
    assert (bound.left.value(term_values), bound.right.value(term_values)) == pytest.approx(sides)


def test_terms_are_in_the_order_of_the_text() -> None:
    measures = ["goodput", "share", "rtt_mean", "rtt_p95", "retransmits", "transfers", "timeouts", "completed"]
    check = Check.parse(" * ".join(f"{measure}(ours)" for measure in measures) + " > 0", FLOWS)
    assert [term.measure for term in check.terms] == measures


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


def judged(
    folder: Path, text: str, ours: list[list[float]], base: float = 10.0, app: str | None = None, **changes: object
) -> Outcome:
    """Judge a check of a run; `ours` has the goodputs of a flow in Mbit/s, by point and repetition.

    `app` is the application of the flow `base`.
    """
    load = {"kind": "app", "app": {"kind": app}} if app else {"kind": "unlimited"}
    points = [{"path.rtt": f"{10 * (number + 1)}ms"} for number in range(len(ours))]
    synthetic = SyntheticRun(
        folder / "run",
        [
            experiment(number, n, sweep=points[number], flows=[flow("ours"), flow("base", load=load)], **changes)
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
    """The interval of three values is 0.2 ± 4.30 s / sqrt(3) = 0.2 ± 1.74, so (1.74 / 0.2)^2 times as many repetitions
    are needed; 20 % are added.
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "retransmit_ratio(ours) / retransmit_ratio(base) < 5",
            "`retransmit_ratio(ours) / retransmit_ratio(base)` has no value: it divides by 0",
        ),
        ("sqrt(share(ours) - 2) > 0", "`sqrt(share(ours) - 2)` has no value: a root, logarithm or power"),
        ("exp(9999 * share(ours)) > 0", "`exp(9999 * share(ours))` has no value: a number in it is not finite"),
        ("copies_jain(ours) > share(ours)", "no repetition has a value of copies_jain(ours)"),
        ("video_bitrate(ours) > 1Mbps", 'only flows with app = "video" have video_bitrate; in this run: no flow'),
        ("stalls(ours) < 2", 'only flows with app = "video" or "call" have stalls; in this run: no flow'),
        ("utilisation_up > 50%", "only runs with uploads have utilisation_up"),
        ("queueing_delay < 20ms", "the engine sim does not record queueing_delay"),
    ],
)
def test_the_reason_for_a_missing_value_is_reported(tmp_path: Path, text: str, reason: str) -> None:
    outcome = judged(tmp_path, text, [[9.0, 9.1, 9.2]])
    assert outcome.verdict == "not settled"
    assert outcome.finding.reason.startswith(reason)


def test_flows_with_a_measure_of_applications_are_named(tmp_path: Path) -> None:
    reason = judged(tmp_path, "video_bitrate(ours) > 1Mbps", [[9.0, 9.1, 9.2]], app="video").finding.reason
    assert reason.endswith("; in this run: base")


def test_a_run_without_samples_is_the_reason_for_missing_values(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "queueing_delay < 20ms", [[9.0, 9.1, 9.2]], sample_interval_ns=0)
    assert outcome.finding.reason == "queueing_delay needs samples, and sample_interval is 0s"


def test_an_equality_without_spread_keeps_a_bound_that_includes_it(tmp_path: Path) -> None:
    assert judged(tmp_path, "timeouts(ours) <= 0", [[9.6, 9.7, 9.8]]).verdict == "holds"
    assert judged(tmp_path / "strict", "timeouts(ours) < 0", [[9.6, 9.7, 9.8]]).verdict == "does not hold"


def test_a_bound_does_not_hold_by_leaving_out_repetitions_without_a_value(tmp_path: Path) -> None:
    """Transfers that have not finished can be those that break the bound."""
    flows = [flow("x", size_bytes=1_000_000)]
    run = SyntheticRun(tmp_path / "run", [experiment(0, repetition, flows=flows) for repetition in range(8)])
    for repetition in range(8):
        completed = repetition < 5
        end_us = (2_000_000 + 10_000 * repetition) if completed else 4_000_000
        run.transfer(0, repetition, "x", size_bytes=1_000_000, completed=completed, end_us=end_us)
    opened = open_run(run.write())

    def verdict(text: str) -> tuple[str, str]:
        (outcome,) = judge(opened, parse_all([text], ["x"], {0: {}}))
        return outcome.verdict, outcome.finding.reason

    assert verdict("completion_time(x) < 4s") == ("not settled", "3 of 8 repetitions have no value")
    assert verdict("completion_time(x) < 1s")[0] == "does not hold"
