"""Goals, noise, disagreements and their reasons, on synthetic cells."""

from pathlib import Path
from typing import Any

import pytest
from thalweg.analysis import estimate, half_width
from thalweg.errors import ThalwegError
from thalweg.validate import ComparedMeasure, GridCell, disagreements, judge, reasons
from thalweg.validate.goals import JudgedGoal

NOBODY_KNOWS = None


def cell(
    measure: str, error: float, kind: Any = "solo", flow: str = "solo", number: int = 0, **values: Any
) -> GridCell:
    compared = ComparedMeasure(**({"first": 1.0, "second": 1.0, "error": error, "noise": NOBODY_KNOWS} | values))
    return GridCell("part", {"path.loss": number}, flow, "cubic", kind, "compared", {measure: compared})


def judged(cells: list[GridCell]) -> dict[tuple[str, str], JudgedGoal]:
    return {(judgement.goal.title, judgement.goal.statistic): judgement for judgement in judge(cells)}


def test_single_flow_goodput_is_judged_by_median_and_90th_percentile() -> None:
    cells = [cell("goodput", error, number=number) for number, error in enumerate([0.02] * 8 + [-0.2] * 2)]
    verdicts = judged(cells)
    median, p90 = (verdicts["goodput, flow alone", statistic] for statistic in ("median", "90th percentile"))
    assert (median.n, median.found, median.verdict) == (10, pytest.approx(0.02), "met")
    assert (p90.found, p90.verdict) == (pytest.approx(0.2), "not met")


def test_goodput_of_concurrent_flows_does_not_count_as_single() -> None:
    verdicts = judged([cell("goodput", 0.5, kind="pair", number=number) for number in range(20)])
    assert verdicts["goodput, flow alone", "median"].verdict == "not enough"
    assert verdicts["goodput, flow alone", "median"].n == 0


def test_too_few_rows_have_no_verdict() -> None:
    verdicts = judged([cell("goodput", 0.0, number=number) for number in range(9)])
    assert verdicts["goodput, flow alone", "median"].verdict == "met"
    assert verdicts["goodput, flow alone", "90th percentile"].verdict == "not enough"


def test_a_pair_of_mirrored_shares_counts_once() -> None:
    cells = [
        cell("share", error, kind="pair", flow=flow, number=number)
        for number in range(4)
        for flow, error in (("a", 0.1), ("b", -0.1))
    ]
    share = judged(cells)["share, two flows", "mean"]
    assert (share.n, share.found, share.verdict) == (4, pytest.approx(0.1), "not met")
    assert len(disagreements(cells)) == 4


def test_rows_without_retransmits_do_not_dilute_the_error() -> None:
    none = [cell("retransmit_ratio", 1.0, number=number, first=0.0, second=0.0004) for number in range(20)]
    lossy = [cell("retransmit_ratio", 0.5, number=20 + number, first=0.01, second=0.02) for number in range(4)]
    verdicts = judged([*none, *lossy])["retransmits, if any", "median"]
    assert (verdicts.n, verdicts.found, verdicts.verdict) == (4, 2.0, "not met")


def test_noise_is_the_interval_of_the_difference_of_both_means() -> None:
    # Equal variances of 1 and n of 3: standard error sqrt(2/3), 4 degrees of freedom, t = 2.776
    assert half_width(estimate([1, 2, 3]), estimate([4, 5, 6])) == pytest.approx(2.776 * (2 / 3) ** 0.5, 1e-3)
    assert half_width(estimate([1, 2, 3]), estimate([4])) is None
    # One side is deterministic, so the interval is that of the other one: t(2) = 4.303
    assert half_width(estimate([1, 2, 3]), estimate([4, 4, 4])) == pytest.approx(4.303 / 3**0.5, 1e-3)


def test_a_difference_within_the_noise_is_not_a_disagreement() -> None:
    far = {"first": 1.0, "second": 2.0}
    assert disagreements([cell("goodput", -0.5, **far, noise=1.5)]) == []
    assert len(disagreements([cell("goodput", -0.5, **far, noise=0.5)])) == 1
    assert len(disagreements([cell("goodput", -0.5, **far)])) == 1, "without repetitions there is no excuse"
    assert judged([cell("goodput", -0.5, number=n, **far, noise=1.5) for n in range(4)])[
        "goodput, flow alone", "median"
    ].within_noise == 4  # fmt: skip


def test_disagreements_are_ranked_relative_to_their_measure() -> None:
    cells = [
        cell("rtt_mean", -0.2, number=1),
        cell("retransmit_ratio", 0.25, number=2),
        cell("goodput", 0.02, number=3),
    ]
    assert [disagreement.measure for disagreement in disagreements(cells)] == ["retransmit_ratio", "rtt_mean"]


REASONS = """\
[[disagreement]]
engines = ["sim", "uml"]
part = "part"
point = { "path.loss" = 1 }
measures = ["rtt_mean"]
reason = "Delayed ACKs."
"""


def test_a_reason_applies_to_its_points_and_measures(tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text(REASONS)
    known = reasons.load(("sim", "uml"), tmp_path / "reasons.toml")
    cells = [cell("rtt_mean", -0.2, number=1), cell("rtt_mean", -0.2, number=2), cell("goodput", 0.2, number=1)]
    explained = [reasons.explain(disagreement, known) for disagreement in disagreements(cells)]
    assert sorted(map(str, explained)) == ["Delayed ACKs.", "None", "None"]
    assert reasons.stale(known, disagreements(cells), cells, is_whole=True) == []
    assert reasons.load(("sim", "kernel"), tmp_path / "reasons.toml") == []


def test_a_reason_without_its_disagreement_is_stale(tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text(REASONS)
    known = reasons.load(("sim", "uml"), tmp_path / "reasons.toml")
    agreed, elsewhere = [cell("rtt_mean", 0.0, number=1)], [cell("rtt_mean", 0.0, number=2)]
    assert reasons.stale(known, [], agreed, is_whole=False) == known
    assert reasons.stale(known, [], elsewhere, is_whole=False) == [], "its point was not tried"
    assert reasons.stale(known, [], elsewhere, is_whole=True) == known, "there is no such point"


def test_a_misspelt_key_of_a_reason_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "reasons.toml").write_text(REASONS.replace("measures", "measure"))
    with pytest.raises(ThalwegError, match="has `measure`"):
        reasons.load(("sim", "uml"), tmp_path / "reasons.toml")


def test_the_reasons_of_thalweg_can_be_read() -> None:
    for engines in (("sim", "uml"), ("sim", "kernel")):
        assert all(cell.part and cell.reason for cell in reasons.load(engines))
