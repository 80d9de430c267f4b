"""Compares the arms of each part from counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from thalweg.advise.answers.answer import NOT_COMPARABLE, Comparison, Part
from thalweg.advise.counting.segments import Dimension, PartValues
from thalweg.advise.judgement import cautions, verdicts
from thalweg.advise.judgement.samples import METRICS
from thalweg.advise.question import Question
from thalweg.advise.statistics import balance
from thalweg.advise.statistics.effects import Bootstrap, adjusted, difference
from thalweg.advise.statistics.networks import ByMetric

MEDIAN_ALONE = (0.5,)


@dataclass(frozen=True)
class Counted:
    """Counts of one or several parts of the traffic."""

    cells: pl.DataFrame
    """Values by part: metric, arm, group, bucket; n, weight, total."""
    mixes: pl.DataFrame
    """Work of the arms: metric, arm, group; sums of sizes and round-trip times."""
    queues: pl.DataFrame
    """Queueing delays of the control: is_lossy, group; n, sum, squares."""
    networks: ByMetric = field(default_factory=dict)

    def split(self, by: Sequence[str]) -> Iterator[tuple[tuple[int, ...], "Counted"]]:
        """Return the counts of each part."""
        cells, mixes, queues = (
            table.partition_by(list(by), as_dict=True) for table in (self.cells, self.mixes, self.queues)
        )
        for key in cells:
            yield key, Counted(cells[key], mixes.get(key, self.mixes.clear()), queues.get(key, self.queues.clear()))

    def has_enough(self, question: Question) -> bool:
        """Return whether any metric has enough samples of both arms."""
        arms = self.cells.group_by("metric", "arm").agg(pl.col("n").sum()).group_by("metric").agg(pl.col("n"))
        return any(len(n) == 2 and min(n) >= question.least_samples for n in arms["n"].to_list())

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.cells["n"].sum())


def compare(
    tables: Mapping[PartValues, Counted],
    chosen: Sequence[Dimension],
    question: Question,
    bootstrap: Bootstrap,
    at: Sequence[float] = MEDIAN_ALONE,
) -> list[Part]:
    """Compare the arms of parts, keyed by their values in each dimension, without verdicts."""
    parts = []
    for values, counted in tables.items():
        compared: dict[str, Comparison] = {}
        for number, metric in enumerate(METRICS):
            cells = counted.cells.filter(pl.col("metric") == number)
            if cells.is_empty():
                continue
            mixed = counted.mixes.filter(pl.col("metric") == number)
            effect = difference(cells, bootstrap, at)
            compared[metric] = Comparison(
                metric,
                effect,
                balance.imbalances(mixed, bootstrap),
                None,
                "",
                "",
                counted.networks.get(number),
                balance.receiver_limited(mixed),
            )
        names = tuple(dimension.text(value) for dimension, value in zip(chosen, values, strict=True)) or ("everything",)
        parts.append(Part(names, values, compared, counted.n, "", "", balance.losses(counted.queues, bootstrap)))
    return parts


def with_verdicts(parts: Iterable[Part], question: Question) -> list[Part]:
    """Return the parts with verdicts, the largest part first; p-values are adjusted for the number of tests."""
    parts = list(parts)
    p_values = {
        (part.names, metric): comparison.difference.median.p
        for part in parts
        for metric, comparison in part.comparisons.items()
        if verdicts.is_testable(comparison, question) and comparison.difference and comparison.difference.median
    }
    p_adjusted = adjusted(p_values)
    judged = []
    for part in parts:
        comparisons = {
            metric: verdicts.with_verdict(comparison, p_adjusted.get((part.names, metric)), question)
            for metric, comparison in part.comparisons.items()
        }
        verdict, reason = verdicts.together(comparisons, question)
        judged.append(replace(part, comparisons=comparisons, verdict=verdict, reason=reason))
    return sorted(judged, key=lambda part: (-part.n, part.names))


def without_paradox(overall: Part, parts: Sequence[Part]) -> Part:
    """Withdraw the verdict of the total if it contradicts its parts."""
    if not any(cautions.is_paradox(metric, parts, overall) for metric in overall.comparisons):
        return overall
    return replace(
        overall, verdict=NOT_COMPARABLE, reason="the arms served different mixtures of clients; see the parts"
    )
