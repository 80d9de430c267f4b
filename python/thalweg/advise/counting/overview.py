"""Overview of the records before the comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import ibis
import polars as pl
from ibis.expr.types import Table

from thalweg.advise.counting import arms
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.question import Question
from thalweg.errors import Exit, ThalwegError
from thalweg.records.schema import CLOSE, LATEST_US, TRANSFER, UNKNOWN_TEXT
from thalweg.records.where import Where, text

STEPS_S = (60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400)
MAX_TIME_STEPS = 200


@dataclass(frozen=True)
class Overview:
    """Counts of rows, and the sources and times that they cover."""

    rows: int
    untouched: int
    algorithms: Mapping[str, int]
    """Closed connections and transfers per algorithm, without `untouched` ones, in descending order."""
    with_transfers: Sequence[str]
    """Sources that mark transfers."""
    without_transfers: Sequence[str]
    """Sources that record connections only."""
    first_us: int
    last_us: int
    other_algorithms: Mapping[str, int]
    receiver_limited: int
    without_arm: Mapping[str, int]
    """Rows of the compared algorithms that belong to no arm, by reason."""
    is_sampled: bool
    activated_us: int
    """Time of the activation in the design; otherwise the start of the treatment's first row."""

    @property
    def step_us(self) -> int:
        """Length of a time step, in microseconds."""
        length_s = (self.last_us - self.first_us) / 1e6
        return 1_000_000 * next((step for step in STEPS_S if length_s / step < MAX_TIME_STEPS), STEPS_S[-1])


def overview(engine: QueryEngine, rows: Table, question: Question) -> Overview:
    """Scan all rows; rows with an unknown end, or a time after the year 9999, are ignored.

    Raises:
        ThalwegError: If an algorithm does not occur, or if the design's time lies outside of the records.
    """
    began = arms.began(rows)
    sane = rows.filter(rows["end_us"] <= LATEST_US, began <= LATEST_US)
    is_limited = arms.is_receiver_limited(sane) if question.without_receiver_limited else ibis.literal(False)
    without_arm = arms.without_arm(sane, question)
    counted = sane.group_by(["kind", "source", "cc", arms.is_untouched(sane).name("is_untouched")]).agg(
        receiver_limited=sane.count(where=is_limited.fill_null(False)),
        n=sane.count(),
        first_us=arms.began(sane).min(),
        last_us=sane["end_us"].max(),
        stands_for=sane["sampled_one_in"].max().fill_null(1),
        **{reason: sane.count(where=has_no_arm.fill_null(False)) for reason, has_no_arm in without_arm.items()},
    )
    counts = engine.fetch(counted).with_columns(pl.col("cc").fill_null(UNKNOWN_TEXT))
    closed = counts.filter(pl.col("kind").is_in([CLOSE, TRANSFER]), ~pl.col("is_untouched"))
    algorithms = closed.group_by("cc").agg(pl.col("n").sum()).sort(["n", "cc"], descending=[True, False])
    by_algorithm = dict(algorithms.iter_rows())
    for flag, name in {"--treatment": question.treatment, "--control": question.control}.items():
        if not by_algorithm.get(name):
            if not by_algorithm and (untouched := int(counts.filter("is_untouched")["n"].sum())):
                raise _all_untouched(untouched)
            if not by_algorithm and (n := engine.fetch(rows.aggregate(n=rows.count())).item()):
                raise _no_moments(n)
            raise _no_such_arm(flag, name, by_algorithm, question.where)
    transfers, connections = (set(closed.filter(pl.col("kind") == kind)["source"]) for kind in (TRANSFER, CLOSE))
    first_us, last_us = int(closed["first_us"].min()), int(closed["last_us"].max())  # type: ignore[arg-type]
    at_us = question.design.at_us
    if at_us is not None and not first_us < at_us <= last_us:
        raise _outside(at_us, first_us, last_us)
    of_arms = closed.filter(pl.col("cc").is_in([question.treatment, question.control]))
    begun_us = int(closed.filter(pl.col("cc") == question.treatment)["first_us"].min())  # type: ignore[arg-type]
    return Overview(
        rows=int(counts["n"].sum()),
        untouched=int(counts.filter("is_untouched")["n"].sum()),
        algorithms=by_algorithm,
        other_algorithms={cc: n for cc, n in by_algorithm.items() if cc not in (question.treatment, question.control)},
        receiver_limited=int(of_arms["receiver_limited"].sum()),
        without_arm={reason: int(of_arms[reason].sum()) for reason in without_arm},
        with_transfers=sorted(transfers),
        without_transfers=sorted(connections - transfers),
        first_us=first_us,
        last_us=last_us,
        is_sampled=int(counts["stands_for"].max()) > 1,  # type: ignore[arg-type]
        activated_us=begun_us if at_us is None else at_us,
    )


def _all_untouched(n: int) -> ThalwegError:
    return ThalwegError(
        "nothing-to-compare",
        f"an application, a route or the administrator chose the algorithm of all {n:,} rows, and `tune` did not",
        place="assignment",
        found="untouched",
        expected="connections whose algorithm `tune` chose, or records of `thalweg-agent record`",
        hint="while routes choose the algorithm, record with `thalweg-agent record` instead of `tune`",
        exit_code=Exit.NO_EVIDENCE,
    )


def _no_moments(n: int) -> ThalwegError:
    return ThalwegError(
        "nothing-to-compare",
        f"none of the {n:,} rows is a closed connection or a transfer with a known end",
        expected="kind `close` or `transfer`, and end_us, a UNIX time in microseconds",
        hint="thalweg records counts the rows of the files",
        exit_code=Exit.NO_EVIDENCE,
    )


def _outside(at_us: int, first_us: int, last_us: int) -> ThalwegError:
    at, first, last = (f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%dT%H:%M}" for us in (at_us, first_us, last_us))
    return ThalwegError(
        "nothing-to-compare",
        f"the records have nothing {'before' if at_us <= first_us else 'after'} {at} UTC",
        place="--at",
        found=at,
        expected=f"a time within the records, {first} to {last} UTC",
        hint="--at is the time at which the treatment was enabled",
        exit_code=Exit.NO_EVIDENCE,
    )


def _no_such_arm(flag: str, name: str, connections: Mapping[str, int], where: Where) -> ThalwegError:
    listed = ", ".join(f"{cc} ({n:,})" for cc, n in connections.items()) or "none"
    known = [cc for cc in connections if cc != UNKNOWN_TEXT]
    if len(known) > 1:
        hint = "choose two of them with --treatment and --control"
    elif known or not connections:
        hint = "run both at the same time: docs/guide/where-does-bbr-help.md describes three designs"
    else:
        hint = "these records do not name the algorithm: --cc of `thalweg import` sets it"
    among = f"rows with {text(where)}" if where else "these records"
    return ThalwegError(
        "no-such-arm",
        f"there are no closed connections and no transfers with `{name}` in {among}",
        place=flag,
        found=listed,
        expected="records of both algorithms",
        hint=hint,
        exit_code=Exit.NO_EVIDENCE,
    )
