"""Difference between the arms by spans of a connection's life: Shah (2019) found a gain of BBR only in the early part.

Each span is compared among the connections that were open for all of it.
"""

from collections.abc import Iterable

import ibis
import polars as pl
from ibis.expr.types import Table

from thalweg.advise.answers.answer import Age
from thalweg.advise.counting import arms, buckets, counts, segments
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.rows import Rows
from thalweg.advise.judgement.samples import HEAVIEST
from thalweg.advise.question import HOUR_US, Question
from thalweg.advise.statistics.effects import Bootstrap, difference
from thalweg.records.schema import CLOSE, UNKNOWN_TEXT

SPANS = ((0, 1), (1, 3), (3, 10), (10, 30))
"""Spans, in seconds since the connection opened."""

MOVED = 1
"""Minimum bytes in a span; a span without transfers shows nothing about the network."""


def lives(rows: Table, question: Question) -> Table:
    """Return the bytes of each connection at the ends of the spans, for connections of at least a second.

    Clusters are hours, or pairs of switchback periods, because there are few long connections.
    """
    closed = rows.filter(rows["kind"] == CLOSE, rows["acked_1s_bytes"].notnull(), arms.belongs(rows, question))
    began_us = arms.began(closed)
    design = question.design
    if design.name == "switchback":
        unit = arms.unit(closed[f"part_{design.unit}"].fill_null(UNKNOWN_TEXT)) if design.unit else 0
        turn = arms.pair(began_us, question, unit)
    else:
        turn = segments.whole(began_us, HOUR_US)
    weight = closed["sampled_one_in"].fill_null(1)
    return closed.select(
        arm=arms.arm(closed, question),
        group=(turn % arms.GROUPS).cast("int8"),
        weight=ibis.least(ibis.greatest(weight, 1), HEAVIEST),
        **{f"acked_{end}s_bytes": closed[f"acked_{end}s_bytes"] for _, end in SPANS},
    )


def throughput_counts(lives: Table) -> Table:
    """Count throughputs per span: columns span, arm, group, bucket; n, weight, total."""
    parts = []
    for number, (begin, end) in enumerate(SPANS):
        moved = lives[f"acked_{end}s_bytes"]
        if begin:
            moved = moved - lives[f"acked_{begin}s_bytes"]
        rate = segments.whole(ibis.least(moved, buckets.LARGEST) * 8, end - begin)
        parts.append(
            lives.filter(moved >= MOVED).select(
                span=ibis.literal(number, type="int8"),
                arm=lives["arm"],
                group=lives["group"],
                bucket=buckets.of_column(rate).cast("int16"),
                value=ibis.least(rate, buckets.LARGEST),
                weight=lives["weight"],
            )
        )
    union = ibis.union(*parts, distinct=False)
    return union.group_by(["span", "arm", "group", "bucket"]).agg(**counts.value_sums(union))


def ages(engine: QueryEngine, rows: Rows, question: Question, bootstrap: Bootstrap) -> Iterable[Age]:
    """Compare each span; spans without samples of both arms are omitted."""
    lived = rows.having("acked_1s_bytes")
    if lived is None:
        return
    cells = engine.fetch(throughput_counts(engine.keep("lives", lives(lived, question))))
    for number, (begin, end) in enumerate(SPANS):
        effect = difference(cells.filter(pl.col("span") == number), bootstrap)
        if effect:
            yield Age(f"{begin} to {end} s", effect.treatment, effect.control, effect.median)
