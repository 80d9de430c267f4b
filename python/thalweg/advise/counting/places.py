"""Attributes of each destination: network, location, distance and loss.

They are computed once per address and joined to the rows, because there are fewer addresses than rows. The loss of a
network in one fold of the records is computed from the other folds, so that a sample does not influence its own class.
If columns of the records are dimensions or units, each combination of an address and their values is a destination.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ibis
from ibis.expr.types import StringValue, Table, Value

from thalweg.advise.counting import arms, buckets, prefixes, segments
from thalweg.advise.counting.built_in import number_of
from thalweg.advise.counting.engines import QueryEngine
from thalweg.advise.counting.segments import Dimension
from thalweg.errors import ThalwegError
from thalweg.records.schema import UNKNOWN_TEXT

LOSSES = ("retransmits", "segments")
"""Columns that are summed over the control's samples."""

MANY = 20
"""Minimum samples of a network that almost certainly has both arms, if these are equally probable."""


@dataclass(frozen=True)
class Places:
    """Attributes of destinations."""

    table: Table
    """One row per destination and fold: `keys`, number (of its network), code, rtt, loss (numbers of classes), part
    (its number), unit (number of the switchback unit, or 0).
    """
    keys: Sequence[str]
    """Columns that identify the destination and the fold of a row."""
    parts: Table | None
    """One row per part: its number, and its value `by_NAME` in each dimension of destinations. None without such a
    dimension.
    """
    n_parts: int
    """Number of parts; 1 if no dimension depends on the destination."""
    counted: Table
    """One row per destination, arm, fold, metric and requested class of the transfer: these keys, network, n, weight,
    level (the weighted sum of the values' bucket numbers), and sums of round-trip times, retransmits and segments.
    """
    n: int
    n_many: int
    """Number of samples in networks with at least `MANY` samples."""
    n_both: int
    """Number of these samples in networks that have both arms."""


def places(
    engine: QueryEngine, rows: Table, table: Path | None, dimensions: Sequence[Dimension], unit: str | None
) -> Places:
    """Return the attributes of all destinations of the rows that `samples.comparable_rows` returns.

    `table` is the user's table of networks, `unit` the column of the switchback units.

    Raises:
        ThalwegError: If the table is malformed, or has no value for any destination.
    """
    of_records = [name for name in rows.columns if name.startswith("part_")]
    alone = engine.keep("places_alone", _counted(rows, ["address", *of_records], dimensions))
    networks = engine.keep("networks", _networks(alone, _share_of_control(engine, alone)))
    keys = ["address", *of_records, "fold"]
    located_places = alone.select(*keys, "network").distinct().inner_join(networks, ["network", "fold"])
    of_table = [dimension.name for dimension in dimensions if dimension.of == "table"]
    if table is not None and of_table:
        addresses = alone.select(net_address="address").distinct()
        located = prefixes.located(engine, addresses, table)
        located = located.select("net_address", **{f"table_{name}": located[name] for name in of_table})
        located_places = located_places.inner_join(located, [located_places["address"] == located["net_address"]])
    by = {
        f"by_{dimension.name}": _value(located_places, dimension)
        for dimension in dimensions
        if dimension.of != "transfer"
    }
    located_places = engine.keep("places_named", located_places.select(*keys, "number", "code", "rtt", "loss", **by))
    parts = engine.keep("parts", _numbered(located_places, list(by))) if by else None
    located_places = located_places.mutate(
        unit=arms.unit(located_places[f"part_{unit}"]) if unit else ibis.literal(0, type="int64")
    )
    joined = (
        located_places.mutate(part=ibis.literal(0, type="int64"))
        if parts is None
        else located_places.inner_join(parts, list(by))
    )
    if parts is not None and table is not None and of_table:
        is_known = ibis.or_(*(parts[f"by_{name}"] != UNKNOWN_TEXT for name in of_table))
        if not engine.fetch(parts.filter(is_known).limit(1)).height:
            titles = [dimension.title for dimension in dimensions if dimension.of == "table"]
            raise _unknown(engine, alone, table, " or ".join(titles))
    sums = engine.fetch(_assigned(alone)).row(0, named=True)
    return Places(
        table=engine.keep("places", joined.select(*keys, "number", "code", "rtt", "loss", "part", "unit")),
        keys=keys,
        parts=parts,
        n_parts=1 if parts is None else engine.fetch(parts.agg(n=parts.count())).item(),
        counted=alone,
        n=sums["n"] or 0,
        n_many=sums["n_many"] or 0,
        n_both=sums["n_both"] or 0,
    )


def _unknown(engine: QueryEngine, destinations: Table, table: Path, attribute: str) -> ThalwegError:
    is_hashed = destinations["address"].startswith("h:")
    n, n_hashed = engine.fetch(destinations.agg(n=destinations.count(), n_hashed=is_hashed.sum())).row(0)
    if n == n_hashed:
        return ThalwegError(
            "hashed-addresses",
            f"the addresses of the records are hashed, so `{table}` cannot give their {attribute}",
            place="--prefixes",
            expected="records with truncated or whole addresses",
            hint="--by rtt,retransmits; for later records, --addresses truncated of thalweg-agent or thalweg import",
        )
    return ThalwegError(
        "unknown-networks",
        f"no destination of the records has a known {attribute} in `{table}`",
        place="--prefixes",
        expected="a table with the networks of the destinations, each as 192.0.2.0/24 or 2001:db8::/32",
        hint="compare its networks with those of the records: thalweg advise records --by prefix",
    )


def network(address: StringValue) -> StringValue:
    """Truncate complete addresses to /24 or /48; other addresses are unchanged.

    IPv6 addresses are in the format of RFC 5952, so zeros may be omitted.
    """
    whole_v6 = address.re_extract("^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):", 1)
    short_v6 = address.re_extract("^([0-9a-f:]*?)::", 1)
    v6 = (ibis.ifelse(whole_v6 != "", whole_v6, short_v6) + "::/48").re_replace("(:0)+::/48$", "::/48")
    return ibis.cases(
        (address.contains("/") | address.startswith("h:"), address),
        (address.contains(":"), v6),
        (address.contains("."), address.re_replace("[.][0-9]+$", ".0/24")),
        else_=address,
    )


def _counted(rows: Table, keys: Sequence[str], dimensions: Sequence[Dimension]) -> Table:
    """Count the samples by destination, arm, fold, metric and requested class of the transfer; sum their values."""
    is_known = rows["retransmits"].between(0, buckets.LARGEST) & rows["segments"].between(1, buckets.LARGEST)
    nothing = ibis.literal(None, type="int64")
    of_transfer = segments.of_transfer(rows, dimensions)
    selected = rows.select(
        *keys,
        "arm",
        "fold",
        "metric",
        "weight",
        **of_transfer,
        level=buckets.of_column(rows["value"]) * rows["weight"],
        # Implausible values are excluded, so that sums fit into 64 bits.
        rtt_us=ibis.ifelse(rows["rtt_us"].between(0, buckets.LARGEST), rows["rtt_us"], nothing),
        retransmits=ibis.ifelse(is_known, rows["retransmits"], nothing),
        segments=ibis.ifelse(is_known, rows["segments"], nothing),
    )
    counts = selected.group_by([*keys, "arm", "fold", "metric", *of_transfer]).agg(
        n=selected.count(),
        weight=selected["weight"].sum(),
        level=selected["level"].sum(),
        rtt_sum_us=selected["rtt_us"].sum(),
        rtt_n=selected["rtt_us"].count(),
        retransmits=selected["retransmits"].sum(),
        segments=selected["segments"].sum(),
    )
    return counts.mutate(network=network(counts["address"]))


def _share_of_control(engine: QueryEngine, places: Table) -> float:
    n: dict[int, int] = dict(engine.fetch(places.group_by("arm").agg(n=places["n"].sum())).iter_rows())
    return n.get(arms.CONTROL, 0) / max(sum(n.values()), 1)


def _networks(places: Table, share_of_control: float) -> Table:
    """Number the networks in the order of their names, and classify them: by round-trip time, and for each fold by the
    control's retransmissions in the other folds.
    """
    is_control = places["arm"] == arms.CONTROL
    sums = {
        "n": places["n"].sum(),
        "segments": places["segments"].sum().fill_null(0),
        **{f"control_{name}": places[name].sum(where=is_control).fill_null(0) for name in LOSSES},
    }
    own = places.group_by(["network", "fold"]).agg(**{f"own_{name}": value for name, value in sums.items()})
    totals = places.group_by("network").agg(
        rtt_sum_us=places["rtt_sum_us"].sum().fill_null(0),
        rtt_n=places["rtt_n"].sum(),
        **sums,
    )
    totals = totals.mutate(number=ibis.row_number().over(order_by=totals["network"]).cast("int64"))
    both = own.inner_join(totals, "network")
    others = {name: both[name] - both[f"own_{name}"] for name in sums}
    is_known = segments.are_enough(others["n"], others["segments"], share_of_control)
    return both.select(
        "network", "fold", "number",
        code=number_of(both["network"], 2),
        rtt=segments.rtt_class(both["rtt_sum_us"], both["rtt_n"]),
        loss=segments.loss_class(others["control_retransmits"], others["control_segments"], is_known),
    )  # fmt: skip


def _value(places: Table, dimension: Dimension) -> Value:
    """Return the value of a destination in a dimension: a text, or the number of a class."""
    if dimension.titles:
        return places[{"rtt": "rtt", "retransmits": "loss"}[dimension.name]]
    column = {"network": "network", "table": f"table_{dimension.name}", "records": f"part_{dimension.name}"}
    return places[column[dimension.of]].nullif("").fill_null(UNKNOWN_TEXT)


def _numbered(places: Table, by: Sequence[str]) -> Table:
    distinct = places.select(by).distinct()
    return distinct.mutate(part=ibis.row_number().over(order_by=[distinct[name] for name in by]).cast("int64"))


def _assigned(places: Table) -> Table:
    """Count all samples, those of networks with at least `MANY` samples, and those of such networks with both arms."""
    is_control = places["arm"] == arms.CONTROL
    networks = places.group_by("network").agg(
        treatment=places["n"].sum(where=~is_control).fill_null(0),
        control=places["n"].sum(where=is_control).fill_null(0),
    )
    n = networks["treatment"] + networks["control"]
    is_both = ibis.least(networks["treatment"], networks["control"]) > 0
    return networks.agg(
        n=n.sum(),
        n_many=n.sum(where=n >= MANY).fill_null(0),
        n_both=n.sum(where=(n >= MANY) & is_both).fill_null(0),
    )
