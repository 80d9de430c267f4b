"""The weight of each network in a part of the traffic, and its contribution to the effect.

The effect without a network is measured on the mean logarithm, whose sums can be subtracted; the bucket numbers of
values are logarithms.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import ibis
import polars as pl
from ibis.expr.types import Table

from thalweg.advise.counting import buckets, keys, parts
from thalweg.advise.counting.arms import CONTROL, TREATMENT
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.places import Places
from thalweg.advise.counting.segments import MAP, UNKNOWN_CLASS, Dimension
from thalweg.advise.statistics.networks import ByMetric, Heavy, Networks
from thalweg.records.schema import UNKNOWN_TEXT

NOTABLE_SHARE = 0.01
"""Minimum fraction of an arm's weight for a leave-one-out effect; a smaller network cannot change a median much."""

MOSTLY = 0.5
"""Fraction of the weight without an address from which on the number of networks is unknown."""

PER_MILLIARD = 1_000_000_000
"""Unit of shares, which are integers, so that their sums of squares are exact."""

DIVISIONS = 4
"""Divisions of the traffic that are described together: everything, two by classes, and parts."""

WITHIN_NETWORK = frozenset({"prefix", "remote_address"})
"""Dimensions whose parts lie within one network each."""

OF_ARMS = {"treatment": TREATMENT, "control": CONTROL}
SUMS = ("weight", "level")
COLUMNS = [f"{arm}_{of}" for arm in OF_ARMS for of in SUMS]


@dataclass(frozen=True)
class OfParts:
    """The networks of the total, of each class of destinations, and of each part."""

    by_class: Mapping[tuple[str, ...], Mapping[int, ByMetric]]
    """Networks by the names of the dimensions (empty for the total), then by the number of the class."""
    by_part: Mapping[int, ByMetric]
    """Networks by the number of the part, for numbered parts that are wider than a network."""

    def of_class(self, names: Sequence[str], values: Sequence[int]) -> ByMetric:
        """Return the networks of one class."""
        packed = dict(zip(names, (value - UNKNOWN_CLASS for value in values), strict=True))
        number = packed.get(MAP[0], 0) * keys.CLASSES + packed.get(MAP[1], 0)
        return self.by_class[tuple(names)].get(number, {})

    def of_part(self, number: int, dimensions: Sequence[Dimension]) -> ByMetric:
        """Return the networks of the part with a number."""
        networks = self.by_part if parts.are_asked(dimensions) else self.by_class[_names(dimensions)]
        return networks.get(number, {})


def are_within_one(dimensions: Sequence[Dimension]) -> bool:
    """Return whether each part lies within one network."""
    return any(dimension.name in WITHIN_NETWORK for dimension in dimensions)


def described(engine: QueryEngine, places: Places, dimensions: Sequence[Dimension], least_samples: int) -> OfParts:
    """Describe the networks of what is evaluated, except of parts within one network or with few samples."""
    weights = engine.keep("network_weights", _weights(places, dimensions))
    requested = () if parts.are_asked(dimensions) else _names(dimensions)
    classes = list(dict.fromkeys([(), MAP, requested]))
    numbers = [parts.of_place(weights["place"], names) if names else ibis.literal(0, type="int64") for names in classes]
    if parts.are_asked(dimensions) and not are_within_one(dimensions):
        numbers.append(weights["part"])
    # One query for all divisions, because each query has a fixed cost.
    keyed = [
        weights.mutate(key=(number * DIVISIONS + division).cast("int64")) for division, number in enumerate(numbers)
    ]
    found = _described(engine, ibis.union(*keyed, distinct=False), len(classes), least_samples)
    by_division: list[dict[int, ByMetric]] = [{} for _ in range(DIVISIONS)]
    for key, networks in found.items():
        by_division[key % DIVISIONS][key // DIVISIONS] = networks
    return OfParts(dict(zip(classes, by_division, strict=False)), by_division[len(classes)])


def _names(dimensions: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple(dimension.name for dimension in dimensions)


def _weights(places: Places, dimensions: Sequence[Dimension]) -> Table:
    """Sum by class, part, metric and network: for each arm its weight and the weighted sum of bucket numbers."""
    where = places.table.rename({f"at_{name}": name for name in places.keys})
    rows = places.counted.inner_join(where, [places.counted[name] == where[f"at_{name}"] for name in places.keys])
    part = ibis.literal(0, type="int64")
    if parts.are_asked(dimensions):
        tail = [rows[name] if name in rows.columns else ibis.literal(0) for name in ("hour", "size")]
        part = parts.packed(rows["part"], *tail)
    rows = rows.mutate(place=keys.place(rows["rtt"], rows["loss"]), part=part)
    sums = {
        f"{name}_{of}": rows[of].sum(where=rows["arm"] == arm).fill_null(0)
        for name, arm in OF_ARMS.items()
        for of in SUMS
    }
    return rows.group_by(["place", "part", "metric", "number"]).agg(network=rows["network"].max(), **sums)


def _described(engine: QueryEngine, weights: Table, of_parts: int, min_weight: int) -> dict[int, ByMetric]:
    by = ["key", "metric"]
    networks = engine.view(
        "networks_of_keys",
        weights.group_by([*by, "number"]).agg(
            network=weights["network"].max(), **{column: weights[column].sum() for column in COLUMNS}
        ),
    )
    is_known = networks["network"] != UNKNOWN_TEXT
    totals = networks.group_by(by).agg(
        networks=networks["number"].count(where=is_known),
        unknown=(networks["treatment_weight"] + networks["control_weight"]).sum(where=~is_known).fill_null(0),
        **{f"all_{column}": networks[column].sum(where=is_known).fill_null(0) for column in COLUMNS},
    )
    enough = (totals["all_treatment_weight"] + totals["all_control_weight"] + totals["unknown"]) >= min_weight
    totals = totals.filter((totals["key"] % DIVISIONS != of_parts) | enough)
    with_network = networks.filter(is_known)
    with_network = with_network.inner_join(totals, by)
    with_network = with_network.mutate(
        **{
            f"{arm}_share": (
                with_network[f"{arm}_weight"].cast("float64") * PER_MILLIARD
                / ibis.greatest(with_network[f"all_{arm}_weight"], 1).cast("float64")
            ).floor().cast("int64")
            for arm in OF_ARMS
        }
    )  # fmt: skip
    shares = {arm: with_network[f"{arm}_share"] for arm in OF_ARMS}
    squares = with_network.group_by(by).agg(
        **{f"{arm}_squares": (share * share).sum() for arm, share in shares.items()}
    )
    is_heavy = ibis.greatest(*shares.values()) >= NOTABLE_SHARE * PER_MILLIARD
    heavy = with_network.filter(is_heavy).select(*by, "network", *(f"{arm}_share" for arm in OF_ARMS), *COLUMNS)
    rows = engine.fetch(totals).join(engine.fetch(squares), on=by, how="left").sort(by)
    heavies = engine.fetch(heavy).partition_by(by, as_dict=True) if len(rows) else {}
    networks_of_parts: dict[int, dict[int, Networks]] = {}
    for row in rows.iter_rows(named=True):
        # DuckDB returns a sum of sums as a decimal. Squares are null if no network is known.
        sums = {column: int(number) for column, number in row.items() if number is not None}
        of_part = heavies.get((sums["key"], sums["metric"]))
        heavy_ones = tuple(_heavy(of_part, sums)) if of_part is not None else ()
        networks_of_parts.setdefault(sums["key"], {})[sums["metric"]] = _networks(sums, heavy_ones)
    return dict(networks_of_parts)


def _networks(sums: Mapping[str, int], heavy: tuple[Heavy, ...]) -> Networks:
    known, unknown = sum(sums[f"all_{arm}_weight"] for arm in OF_ARMS), sums["unknown"]
    unknown_share = unknown / max(known + unknown, 1)
    squares = [of_arm for arm in OF_ARMS if (of_arm := sums.get(f"{arm}_squares"))]
    effective = None if unknown_share >= MOSTLY or not squares else PER_MILLIARD**2 / max(squares)
    return Networks(sums["networks"], effective, unknown_share, heavy)


def _heavy(networks: pl.DataFrame, sums: Mapping[str, int]) -> Iterator[Heavy]:
    """Describe the networks with notable shares, the largest share first."""
    shares = pl.max_horizontal(f"{arm}_share" for arm in OF_ARMS).alias("share")
    of_all = {column: sums[f"all_{column}"] for column in COLUMNS}
    effect = _log(of_all)
    for row in networks.with_columns(shares).sort(["share", "network"], descending=[True, False]).iter_rows(named=True):
        without = _log({column: int(number - row[column]) for column, number in of_all.items()})
        added = None if effect is None or without is None else effect - without
        yield Heavy(row["network"], row["share"] / PER_MILLIARD, added)


def _log(sums: Mapping[str, int]) -> float | None:
    """Return the mean logarithm of the treatment minus that of the control; None: an arm has no samples."""
    weight = {arm: sums[f"{arm}_weight"] for arm in OF_ARMS}
    if not all(weight.values()):
        return None
    treatment, control = (sums[f"{arm}_level"] / weight[arm] for arm in OF_ARMS)
    return (treatment - control) / buckets.PER_OCTAVE * math.log(2)
