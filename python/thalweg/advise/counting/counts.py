"""Queries on the samples: counts and sums of integers.

With `by_part`, a query aggregates by part, and without by class of destination. `keys` packs the keys.
"""

from collections.abc import Mapping

import polars as pl
from ibis.expr.types import IntegerValue, Table

from thalweg.advise.counting import buckets, keys, segments
from thalweg.advise.counting.arms import CONTROL, TREATMENT, TURNS

MINUTE_US = 60_000_000

AWAY_US = 1
"""Offset of round-trip times, so that the lowest bucket contains only unknown ones and 0."""
QUEUED_US = 2
"""Offset of queueing delays, which may be 0; the lowest bucket means unknown."""

SCALE = 1000
"""Scale of the factors that balance strata: integers in thousandths."""

UNEVEN = 0.2
"""Standard deviation of the treatment's share over the strata above which these are balanced, as a fraction of the
product of both arms' shares.
"""

SURELY = 4.0
"""Minimum number of standard deviations by which the share's variation must exceed random variation."""

MIXES = ("size", "rtt")
"""Properties whose distributions must not differ between the arms."""

PART = ("part",)


def histogram(samples: Table, *, by_part: bool = False) -> Table:
    """Count values by bucket: n (samples), weight, total (of values times weight). Without `by_part` also by size."""
    pack = keys.of_bucket if by_part else keys.of_value
    keyed = samples.select(*_parts(by_part), "weight", "value", key=pack(samples["cell"], samples["bin"]))
    return keyed.group_by([*_parts(by_part), "key"]).agg(**value_sums(keyed))


def value_sums(rows: Table) -> dict[str, IntegerValue]:
    """Return the aggregates of values: n (rows), weight, and total (values times weight)."""
    return {"n": rows.count(), "weight": rows["weight"].sum(), "total": (rows["value"] * rows["weight"]).sum()}


def strata(samples: Table, *, by_part: bool = False) -> Table:
    """Count the samples of each time stratum, by subsample of the groups of clusters."""
    pack = keys.metric_arm_and_lot if by_part else keys.lot_of
    keyed = samples.select(*_parts(by_part), "stratum", "weight", key=pack(samples["cell"]))
    return keyed.group_by([*_parts(by_part), "key", "stratum"]).agg(n=keyed.count(), weight=keyed["weight"].sum())


def mix(samples: Table, *, by_part: bool = False) -> Table:
    """Sum the properties that show whether the arms had similar work, over the samples with a size.

    Sizes and round-trip times are summed as bucket numbers, which are logarithms, and as squares of these. Bucket 0
    (unknown) adds nothing.
    """
    pack = keys.within if by_part else _cell
    sized = samples.filter(samples["size"].notnull())
    keyed = sized.select(
        *_parts(by_part),
        "limit",
        key=pack(sized["cell"]),
        size=_class(sized["size"]),
        rtt=_class(sized["rtt"], AWAY_US),
    )
    sums: dict[str, IntegerValue] = {"size_n": keyed.count(), "rtt_n": (keyed["rtt"] > 0).cast("int64").sum()}
    # `limit` is 2 if the receive window limited the sample, 1 if not, and 0 if unknown, which adds nothing.
    sums |= {"limit_n": (keyed["limit"] > 0).cast("int64").sum(), "limit_sum": keyed["limit"].cast("int64").sum()}
    for name in MIXES:
        sums |= {f"{name}_sum": keyed[name].sum(), f"{name}_squares": (keyed[name] * keyed[name]).sum()}
    return keyed.group_by([*_parts(by_part), "key"]).agg(**sums)


def queues(samples: Table, *, by_part: bool = False) -> Table:
    """Sum the bucket numbers of the control's queueing delays, by losses and group of clusters."""
    is_control = keys.arm_of(samples["cell"]) % keys.ARMS == CONTROL
    of_control = samples.filter(is_control, samples["queue"].notnull())
    pack = keys.group_of if by_part else keys.place_and_group
    of_control = of_control.select(
        *_parts(by_part), "is_lossy", queue=_class(of_control["queue"], QUEUED_US), key=pack(of_control["cell"])
    )
    return of_control.group_by([*_parts(by_part), "key", "is_lossy"]).agg(
        n=of_control.count(), sum=of_control["queue"].sum(), squares=(of_control["queue"] * of_control["queue"]).sum()
    )


def sizes(samples: Table) -> Table:
    """Count the samples of each part, metric and arm."""
    keyed = samples.select("part", key=keys.metric_and_arm(samples["cell"]))
    return keyed.group_by(["part", "key"]).agg(n=keyed.count())


def over_time(samples: Table, step_us: int) -> Table:
    """Count the values of the checked samples by time step (whole minutes), metric, arm and bucket."""
    sampled = samples.filter(samples["is_looked_at"])
    key = keys.metric_and_arm(sampled["cell"]) * keys.BUCKETS + sampled["bin"].cast("int64") % keys.BUCKETS
    step = segments.whole(sampled["minute"], step_us // MINUTE_US)
    keyed = sampled.select("weight", "value", step=step, key=key)
    return keyed.group_by(["step", "key"]).agg(**value_sums(keyed))


def meetings(samples: Table) -> Table:
    """Count the samples with a `network` (n), and those in minutes in which their network had both arms (met)."""
    by_network = samples.filter(samples["network"].notnull())
    by_network = by_network.select("network", "minute", arm=keys.arm_of(by_network["cell"]) % keys.ARMS)
    minutes = by_network.group_by(["network", "minute"]).agg(n=by_network.count(), treatment=by_network["arm"].sum())
    is_met = (minutes["treatment"] > 0) & (minutes["treatment"] < minutes["n"])
    return minutes.agg(n=minutes["n"].sum().fill_null(0), met=minutes["n"].sum(where=is_met).fill_null(0))


def unpacked_keys(counted: pl.DataFrame, names: Mapping[str, int], *, by_part: bool = False) -> pl.DataFrame:
    """Unpack the keys. `names` maps the components of a key within a part to their sizes.

    Without `by_part`, the class of the destination precedes them.
    """
    if not by_part:
        return keys.unpacked(counted, "key", {**keys.PLACE, **names})
    first, *_ = names
    return keys.unpacked(counted, "key", {**names, first: 0})


def factors(counted: pl.DataFrame, by: tuple[str, ...], *, are_by_network: bool) -> pl.DataFrame | None:
    """Return a factor for each arm and stratum that gives both arms equal weights in each stratum of the parts whose
    arms alternated unevenly; None if there is no such part. `are_by_network`: the clusters of a stratum are in several
    subsamples, unless all samples are of one network or of unknown networks.

    The factor is the other arm's share: strata count by n1 n0 / (n1 + n0), which estimates a common effect with the
    least variance (Mantel and Haenszel 1959; overlap weights of Li, Morgan and Zaslavsky 2018). Strata of these parts
    with a single arm get no factor. In the other parts every factor is 1.
    """
    parts = [*by, "metric"]
    lots = _both(counted, [*parts, "stratum", "lot"])
    arms = lots.group_by(*parts, "stratum").agg(pl.exclude("lot").sum())
    uneven = _uneven_beyond_chance(arms, parts)
    if are_by_network:
        in_one_lot = uneven.join(_in_one_lot(lots, parts), on=parts, how="semi")
        in_lots = _uneven_in_all_lots(lots, parts).join(in_one_lot, on=parts, how="anti")
        uneven = pl.concat([in_one_lot, in_lots])
    if not uneven["is_uneven"].any():
        return None
    arms = arms.join(uneven, on=parts)
    both = pl.col("treatment") + pl.col("control")
    met = pl.min_horizontal("treatment", "control") > 0
    arm_factors = []
    for arm, own, other in ((TREATMENT, "treatment", "control"), (CONTROL, "control", "treatment")):
        share = (pl.col(other) * SCALE / both).round().cast(pl.Int64).clip(lower_bound=1)
        factor = pl.when("is_uneven").then(pl.when(met).then(share)).otherwise(1).alias("factor")
        of_arm = arms.filter(pl.col(own) > 0)
        key = (pl.col("metric") * keys.ARMS + arm).alias("key")
        arm_factors.append(of_arm.select(*by, key, "stratum", factor))
    return pl.concat(arm_factors).drop_nulls("factor")


def factors_of_units(counted: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame | None:
    """Return factors that balance the units of a switchback; None if there is nothing to balance."""
    turns = counted.select("stratum", unit=pl.col("stratum") // TURNS).unique()
    of_units = counted.with_columns(pl.col("stratum") // TURNS)
    unit_factors = factors(of_units, by, are_by_network=False)
    return (
        None if unit_factors is None else unit_factors.rename({"stratum": "unit"}).join(turns, on="unit").drop("unit")
    )


def weighted(samples: Table, found: Table, *, by_part: bool = False) -> Table:
    """Multiply weights by the factors of metric, arm and stratum; rows without a factor are excluded."""
    alone = found.rename({f"of_{name}": name for name in (*_parts(by_part), "stratum", "key")})
    on = [samples["stratum"] == alone["of_stratum"], keys.metric_and_arm(samples["cell"]) == alone["of_key"]]
    joined = samples.inner_join(alone, [*on, *(samples[name] == alone[f"of_{name}"] for name in _parts(by_part))])
    return joined.mutate(weight=joined["weight"] * joined["factor"]).select(*samples.columns)


def kept(samples: Table, found: Table) -> Table:
    """Return the samples of some parts."""
    return samples.semi_join(found, "part")


def _class(value: IntegerValue, more: int = 0) -> IntegerValue:
    return buckets.of_column(value.cast("int64") + more)


def _cell(cell: IntegerValue) -> IntegerValue:
    return cell.cast("int64")


def _parts(by_part: bool) -> tuple[str, ...]:
    return PART if by_part else ()


def _uneven_in_all_lots(lots: pl.DataFrame, parts: list[str]) -> pl.DataFrame:
    """Return whether the treatment's share varies over the strata by a significant and relevant amount, for each part.

    All connections of a cluster may have the same arm, so that shares vary more than with independent assignment.
    Subsamples share no cluster: an excess of the treatment in a stratum is independent between subsamples, unless it
    affects all of them. So the variance is estimated from the products of pairs of subsamples, and its own variance
    from their squares.
    """
    n = pl.col("treatment_n") + pl.col("control_n")
    share = pl.col("treatment_n").sum() / n.sum()
    x = pl.col("x")
    beyond = lots.with_columns(n=n, x=pl.col("treatment_n") - n * share.over([*parts, "lot"]))
    strata = beyond.group_by(*parts, "stratum").agg(
        n=pl.col("n").sum(),
        treatment_n=pl.col("treatment_n").sum(),
        pairs_n=_pairs(pl.col("n")),
        pairs=_pairs(x),
        squares=_pairs(x**2),
    )
    excess = (pl.col("pairs") / pl.col("n")).sum()
    variance = excess / (pl.col("pairs_n") / pl.col("n")).sum()
    sd = (pl.col("squares") / pl.col("n") ** 2).sum().sqrt()
    overall = pl.col("treatment_n").sum() / pl.col("n").sum()
    is_uneven = (variance > (UNEVEN * overall * (1 - overall)) ** 2) & (excess > SURELY * sd)
    return strata.group_by(parts).agg(is_uneven.alias("is_uneven"))


def _in_one_lot(lots: pl.DataFrame, parts: list[str]) -> pl.DataFrame:
    """Return the parts most of whose samples share their stratum with no other subsample, such as those of one network,
    or of unknown networks.
    """
    n = pl.col("treatment_n") + pl.col("control_n")
    strata = lots.group_by(*parts, "stratum").agg(lots=pl.len(), n=n.sum())
    alone = pl.col("n").filter(pl.col("lots") == 1).sum()
    return strata.group_by(parts).agg(is_alone=2 * alone > pl.col("n").sum()).filter("is_alone").select(parts)


def _pairs(value: pl.Expr) -> pl.Expr:
    return (value.sum() ** 2 - (value**2).sum()) / 2


def _uneven_beyond_chance(arms: pl.DataFrame, parts: list[str]) -> pl.DataFrame:
    """Return whether the strata of each part are uneven, assuming that each sample is assigned independently."""
    n = pl.col("treatment_n") + pl.col("control_n")
    share = pl.col("treatment_n").sum() / n.sum()
    chance = share * (1 - share)
    excess = (n * (pl.col("treatment_n") / n - share) ** 2 - chance).sum()
    is_uneven = (excess > n.sum() * (UNEVEN * chance) ** 2) & (excess > SURELY * chance * (2 * pl.len()).sqrt())
    return arms.group_by(parts).agg(is_uneven.alias("is_uneven"))


def _both(counted: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Sum the weights and sample counts of both arms: columns treatment, control, treatment_n, control_n."""
    arms = (("treatment", TREATMENT), ("control", CONTROL))
    return counted.group_by(names).agg(
        pl.col(of).filter(pl.col("arm") == arm).sum().alias(f"{name}{suffix}")
        for name, arm in arms
        for of, suffix in (("weight", ""), ("n", "_n"))
    )
