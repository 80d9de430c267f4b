"""The table of samples: transfers and connections as narrow rows.

A transfer below the size limit is a sample of completion time; a larger one is a sample of throughput. A connection is
a sample of throughput if its source marks no transfers; otherwise its bytes would count twice. Open connections are not
samples.
"""

from collections.abc import Sequence

import ibis
from ibis.expr.types import BooleanValue, IntegerValue, NumericValue, Table, Value

from thalweg.advise.counting import arms, buckets, keys, parts, segments
from thalweg.advise.counting.counts import MINUTE_US
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.overview import Overview
from thalweg.advise.counting.places import Places
from thalweg.advise.counting.segments import Dimension
from thalweg.advise.judgement import since
from thalweg.advise.question import Question
from thalweg.records.schema import CLOSE, TRANSFER, UNKNOWN_TEXT

TIME = 0
RATE = 1
assert (TIME, RATE) == (False, True), "what is not small is a rate"
METRICS = ("completion_time", "throughput")

LOOKED_AT = 5_000_000
"""Number of rows above which some evaluations use a subsample of the rows, groups or files."""
ONE_GROUP_IN = 16
ONE_ROW_IN = 4

LIMITS = 4
NOT_LIMITED, LIMITED = 1, 2
"""Codes, below `LIMITS`, for whether the receiver limited a sample; 0: unknown."""

LAST_MINUTE = 2**31 - 1
"""The last minute that fits into 32 bits; later ones are clamped to it."""

HEAVIEST = 10_000
"""Maximum weight of a row, so that sums fit into 64 bits."""


def comparable_rows(engine: QueryEngine, rows: Table, question: Question, overview: Overview) -> Table:
    """Return the rows that can be compared, with the columns that later steps need."""
    comparable = rows.filter(arms.belongs(rows, question), _is_sample(rows, question, overview))
    if question.without_receiver_limited:
        comparable = comparable.filter(~arms.is_receiver_limited(comparable).fill_null(False))
    of_records = [name for name in comparable.columns if name.startswith("part_")]
    is_transfer = comparable["kind"] == TRANSFER if overview.without_transfers else ibis.literal(True)
    view = engine.view(
        "comparable_rows",
        comparable.select(
            **{name: comparable[name].fill_null(UNKNOWN_TEXT) for name in of_records},
            arm=arms.arm(comparable, question),
            is_transfer=is_transfer,
            is_small=(is_transfer & (_size(comparable) < question.size_limit_bytes)).fill_null(False),
            began_us=arms.began(comparable),
            fold=arms.fold(arms.began(comparable), question, overview.last_us - overview.first_us),
            size_bytes=_size(comparable),
            fct_us=comparable["fct_us"],
            goodput_bps=comparable["goodput_bps"],
            busy_goodput_bps=comparable["busy_goodput_bps"],
            rtt_us=ibis.coalesce(comparable["rtt_handshake_us"], comparable["rtt_min_us"]),
            queue_us=ibis.coalesce(comparable["rtt_p95_us"], comparable["rtt_max_us"]) - comparable["rtt_min_us"],
            retransmits=comparable["retransmits"],
            segments=comparable["segments"],
            is_receiver_limited=arms.is_receiver_limited(comparable),
            address=comparable["remote_address"].fill_null(UNKNOWN_TEXT),
            weight=ibis.least(ibis.greatest(comparable["sampled_one_in"].fill_null(1), 1), HEAVIEST),
        ),
    )
    return view.select(
        *of_records,
        "arm", "began_us", "fold", "size_bytes", "address", "weight",
        "rtt_us", "queue_us", "retransmits", "segments", "is_receiver_limited",
        metric=(~view["is_small"]).cast("int8"),
        value=ibis.ifelse(view["is_small"], view["fct_us"], _rate(view, overview)),
    )  # fmt: skip


def _is_sample(rows: Table, question: Question, overview: Overview) -> BooleanValue:
    is_known = (_size(rows) < question.size_limit_bytes) | (rows["goodput_bps"] > 0)
    is_transfer = (rows["kind"] == TRANSFER) & (rows["fct_us"] > 0) & (_size(rows) > 0) & is_known
    is_connection = (rows["kind"] == CLOSE) & (rows["busy_goodput_bps"] > 0)
    if not overview.without_transfers:
        return is_transfer
    if not overview.with_transfers:
        return is_connection
    return is_transfer | (is_connection & rows["source"].isin(overview.without_transfers))


def _rate(rows: Table, overview: Overview) -> IntegerValue:
    """Return the throughput in whole bit/s."""
    if not overview.without_transfers:
        rate = rows["goodput_bps"]
    elif not overview.with_transfers:
        rate = rows["busy_goodput_bps"]
    else:
        rate = ibis.ifelse(rows["is_transfer"], rows["goodput_bps"], rows["busy_goodput_bps"])
    return ibis.least(ibis.greatest(rate, 0.0), float(buckets.LARGEST)).floor().cast("int64")


def _size(rows: Table) -> IntegerValue:
    return ibis.coalesce(rows["acked_bytes"], rows["sent_bytes"])


def samples(
    engine: QueryEngine,
    comparable: Table,
    places: Places,
    question: Question,
    dimensions: Sequence[Dimension],
    overview: Overview,
) -> Table:
    """Create and materialise the table of samples from the rows that `comparable_rows` returns.

    Columns: cell and bin (as `keys` packs them), value, weight, stratum, minute (since 1970), age (class of the time
    since the activation), limit (whether the receiver limited it), is_lossy, is_looked_at; size, rtt and queue (with 24
    bits, where checked), network (only in A/B designs, where overlaps are checked), and part (numbered by `parts`,
    where requested). The stored columns are few and narrow, to save memory. The others are derived from them.
    """
    where = places.table.rename({f"at_{name}": name for name in places.keys})
    rows = comparable.inner_join(where, [comparable[name] == where[f"at_{name}"] for name in places.keys])
    columns = _stored(rows, question, overview)
    if parts.are_asked(dimensions):
        columns["part"] = parts.number(rows, dimensions).cast(parts.type_of(places))
    return _with_derived(engine.keep("samples", rows.select(**columns)), question, overview)


def _stored(rows: Table, question: Question, overview: Overview) -> dict[str, Value]:
    began_us = rows["began_us"]
    looked_at = is_looked_at(began_us, overview)
    columns = {
        "cell": keys.cell(rows["rtt"], rows["loss"], rows["metric"], rows["arm"], _group(rows, question)),
        "bin": keys.bin_of(segments.size_class(rows["size_bytes"]), buckets.of_column(rows["value"])),
        "value": ibis.least(rows["value"], buckets.LARGEST),
        "minute": ibis.least(segments.whole(began_us, MINUTE_US), LAST_MINUTE).cast("int32"),
        "mark": _mark(rows, looked_at, overview),
        "size": _possible(rows["size_bytes"], looked_at),
        "rtt": _possible(rows["rtt_us"], looked_at),
        "queue": _possible(rows["queue_us"], looked_at),
    }
    if overview.is_sampled:
        columns["weight"] = rows["weight"].cast("int16")
    if question.design.name == "ab":
        columns["network"] = _watched_network(rows, overview)
    if _has_turns(question):
        columns["stratum"] = arms.stratum(began_us, question, rows["unit"])
    return columns


def _with_derived(kept: Table, question: Question, overview: Overview) -> Table:
    derived = kept.mutate(**_unpacked(kept["mark"]))
    if "part" in kept.columns:
        derived = derived.mutate(part=kept["part"].cast("int64"))
    if not overview.is_sampled:
        derived = derived.mutate(weight=ibis.literal(1, type="int16"))
    if not _has_turns(question):
        derived = derived.mutate(stratum=arms.stratum(kept["minute"].cast("int64") * MINUTE_US, question))
    return derived.drop("mark")


def _has_turns(question: Question) -> bool:
    return question.design.name == "switchback"


def _group(rows: Table, question: Question) -> IntegerValue:
    group = arms.group(rows["began_us"], rows["code"], question, rows["unit"])
    if question.cluster is None and question.clusters == "prefix":
        # Samples without an address are clustered by hour, because their network is unknown.
        of_hour = arms.of_network_hour(rows["began_us"], rows["code"])
        group = ibis.ifelse(rows["address"] == UNKNOWN_TEXT, of_hour, group)
    return group


def _watched_network(rows: Table, overview: Overview) -> IntegerValue:
    """Return the number of the network where overlaps of the arms are counted, and null elsewhere."""
    is_watched = ibis.literal(True)
    if overview.rows > LOOKED_AT:
        is_watched = arms.of_network_hour(rows["began_us"], rows["code"]) % ONE_GROUP_IN == 0
    return ibis.ifelse(is_watched, rows["number"], ibis.literal(None, type="int64")).cast("int32")


def _mark(rows: Table, looked_at: BooleanValue, overview: Overview) -> IntegerValue:
    is_lossy = (rows["retransmits"] > 0).fill_null(False)
    of_limit = since.age(rows["began_us"], overview.activated_us) * LIMITS + _limit(rows["is_receiver_limited"])
    return (of_limit * 4 + looked_at.cast("int8") * 2 + is_lossy.cast("int8")).cast("int8")


def _unpacked(mark: IntegerValue) -> dict[str, Value]:
    return {
        "age": (mark >> ibis.literal(4, type="int32")).cast("int8"),
        "limit": ((mark >> ibis.literal(2, type="int32")) & (LIMITS - 1)).cast("int8"),
        "is_looked_at": (mark & 2) == 2,
        "is_lossy": (mark & 1) == 1,
    }


def _limit(is_limited: BooleanValue) -> IntegerValue:
    return ibis.cases((is_limited.isnull(), 0), (is_limited, LIMITED), else_=NOT_LIMITED).cast("int8")


def is_looked_at(began_us: IntegerValue, overview: Overview) -> BooleanValue:
    """Return which rows are checked more closely: all if there are at most `LOOKED_AT`, otherwise one in `ONE_ROW_IN`.

    Low bits of the start time select them. Higher bits are added, because the lowest are 0 in times in whole seconds.
    """
    if overview.rows <= LOOKED_AT:
        return ibis.literal(True)
    lot = began_us + (began_us >> ibis.literal(10, type="int32"))
    return (lot & (ONE_ROW_IN - 1)) == 0


def _possible(value: IntegerValue, looked_at: BooleanValue) -> NumericValue:
    """Return values with 24 significant bits; null in unchecked rows, and if negative or above `buckets.LARGEST`."""
    nothing = ibis.literal(None, type="float32")
    short = ibis.ifelse(value.between(0, buckets.LARGEST), value.cast("float32"), nothing)
    return ibis.ifelse(looked_at, short, nothing)
