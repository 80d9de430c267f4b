"""The verdict of a part follows from those of its metrics."""

import pytest
from thalweg.advise import NO_DIFFERENCE, NOT_COMPARABLE, NOT_ENOUGH, Arm, Comparison, Difference, Question
from thalweg.advise.judgement import verdicts

FEW = "few samples"


def compared(metric: str, verdict: str) -> Comparison:
    n = 10 if verdict == FEW else 1000
    arm = Arm(n, float(n), 1.0, (1.0,) * 7, 64, ())
    verdict = NOT_ENOUGH if verdict == FEW else verdict
    return Comparison(metric, Difference(arm, arm, {}, None), [], None, verdict, f"why {metric}")


@pytest.mark.parametrize(
    ("of_time", "of_rate", "verdict", "reason"),
    [
        ("bbr", "bbr", "bbr", "why completion_time; why throughput"),
        ("bbr", NO_DIFFERENCE, "bbr", "why completion_time; no difference in throughput"),
        ("bbr", NOT_ENOUGH, "bbr", "why completion_time; not enough data on throughput"),
        (NOT_ENOUGH, "cubic", "cubic", "why throughput; not enough data on completion time"),
        ("bbr", FEW, "bbr", "why completion_time; too few samples of throughput"),
        ("bbr", "cubic", NO_DIFFERENCE, "neither is better for all sizes: why completion_time; but why throughput"),
        (NO_DIFFERENCE, NO_DIFFERENCE, NO_DIFFERENCE, "why completion_time; why throughput"),
        (NO_DIFFERENCE, NOT_ENOUGH, NOT_ENOUGH, "why throughput; no difference in completion time"),
        (NO_DIFFERENCE, FEW, NO_DIFFERENCE, "why completion_time; too few samples of throughput"),
        (FEW, NO_DIFFERENCE, NO_DIFFERENCE, "why throughput; too few samples of completion time"),
        (NO_DIFFERENCE, NOT_COMPARABLE, NOT_COMPARABLE, "why throughput; no difference in completion time"),
        (NOT_COMPARABLE, NOT_ENOUGH, NOT_COMPARABLE, "why completion_time; not enough data on throughput"),
        (NOT_ENOUGH, NOT_ENOUGH, NOT_ENOUGH, "why completion_time; why throughput"),
        (NOT_ENOUGH, FEW, NOT_ENOUGH, "why completion_time; too few samples of throughput"),
        (FEW, FEW, NOT_ENOUGH, "why completion_time; why throughput"),
    ],
)
def test_a_part_combines_its_metrics(of_time: str, of_rate: str, verdict: str, reason: str) -> None:
    comparisons = {
        metric: compared(metric, of_metric)
        for metric, of_metric in (("completion_time", of_time), ("throughput", of_rate))
    }
    assert verdicts.together(comparisons, Question()) == (verdict, reason)
