"""Difference between the arms over the time since the activation.

Spans are whole days, so that each covers all hours of the day. In a before-after design, the treatment in each span is
compared with the time before the activation; in other designs, with the control in the same span.
"""

from collections.abc import Iterator, Sequence

import ibis
import polars as pl
from ibis.expr.types import IntegerValue, Table

from thalweg.advise.answers.answer import Since
from thalweg.advise.counting import counts, keys
from thalweg.advise.counting.arms import CONTROL
from thalweg.advise.question import Question
from thalweg.advise.statistics.effects import Bootstrap, difference

DAY_US = 86_400_000_000

EDGES_DAYS = (1, 3, 7)
TITLES = ("day 1", "days 2 and 3", "days 4 to 7", "later")
assert len(TITLES) == len(EDGES_DAYS) + 1, "every span has a title"


def age(time_us: IntegerValue, activated_us: int) -> IntegerValue:
    """Return the span since the activation that contains a time; earlier times are in the first span."""
    edges = (activated_us + days * DAY_US for days in EDGES_DAYS)
    return sum(((time_us >= edge).cast("int8") for edge in edges), start=ibis.literal(0, type="int8")).cast("int8")


def value_counts(samples: Table) -> Table:
    """Count values of the checked samples per span: columns key, n, weight, total."""
    sampled = samples.filter(samples["is_looked_at"])
    key = sampled["age"].cast("int64") * keys.OF_GROUP * keys.BUCKETS + keys.of_bucket(sampled["cell"], sampled["bin"])
    named = sampled.select(key=key, weight=sampled["weight"], value=sampled["value"])
    return named.group_by("key").agg(**counts.value_sums(named))


def compared(
    counted: pl.DataFrame, question: Question, bootstrap: Bootstrap, metrics: Sequence[str]
) -> Iterator[Since]:
    """Compare the arms in each span, if there are several."""
    cells = keys.unpacked(counted, "key", {"age": 0, **keys.ARM, **keys.GROUP, "bucket": keys.BUCKETS})
    if cells["age"].n_unique() < 2:
        return
    is_control = pl.col("arm") == CONTROL
    for metric, name in enumerate(metrics):
        of_metric = cells.filter(pl.col("metric") == metric)
        for number, title in enumerate(TITLES):
            mine = pl.col("age") == number
            if question.design.name == "before-after":
                mine |= is_control
            effect = difference(of_metric.filter(mine), bootstrap)
            if effect and effect.median:
                yield Since(title, name, effect)
