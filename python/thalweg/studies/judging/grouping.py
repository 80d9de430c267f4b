"""Groups the points of a claim or a figure along a key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from thalweg.report.text.labels import setting
from thalweg.scenario.document import Value
from thalweg.studies.claims.keys import DERIVED, decides_derived, number


@dataclass(frozen=True)
class Group:
    """Points that are reduced to one number."""

    point: Mapping[str, Value | None]
    """Common values of the varying keys."""
    rows: npt.NDArray[np.intp]
    """Indices of the points in the frame, in the order of the key."""
    key: npt.NDArray[np.float64]
    """Values of the key at the points, ascending; for texts, their index."""


def groups(points: pl.DataFrame, key: str | None) -> list[Group]:
    """Group points by all keys except `key`; without `key`, each point is a group.

    Keys of the sweep on which a derived `key` may depend do not separate groups. Groups with a single value of the key
    are excluded.
    """
    names = varying(points)
    if key is None:
        zeros = np.zeros(1)
        return [
            Group(point, np.array([row]), zeros)
            for row, point in enumerate(points.select(names).iter_rows(named=True) if names else [{}] * points.height)
        ]
    keys = [name for name in names if name != key and not (key in DERIVED and decides_derived(name))]
    numbered = points.with_row_index("_row")
    parts = numbered.partition_by(keys, maintain_order=True) if keys else [numbered]
    order = np.array(numbers(points[key].to_list()))
    listed = []
    for part in parts:
        rows = part["_row"].cast(pl.Int64).to_numpy()
        rows = rows[np.argsort(order[rows], kind="stable")]
        if len(np.unique(order[rows])) > 1:
            listed.append(Group({key: part[key][0] for key in keys}, rows, order[rows]))
    return listed


def numbers(values: Sequence[Value | None]) -> list[float]:
    """Return a key's values as numbers; if any is not a number, all are numbered in order of appearance.

    >>> numbers(["2bdp", "0.5bdp"]), numbers(["cubic", "bbr", "cubic"])
    ([2.0, 0.5], [0.0, 1.0, 0.0])
    """
    parsed = [number(value) for value in values]
    if all(number_ is not None for number_ in parsed):
        return [float(number_) for number_ in parsed if number_ is not None]
    ranks: dict[Value | None, float] = {}
    return [ranks.setdefault(value, float(len(ranks))) for value in values]


def varying(points: pl.DataFrame) -> list[str]:
    """Return the sweep keys with several values among the points."""
    keys = [name for name in points.columns if name != "experiment" and name not in DERIVED]
    return [name for name in keys if points[name].n_unique() > 1]


def point_text(point: Mapping[str, Value | None]) -> str:
    """Return the name of a point, from its values of the varying keys.

    >>> point_text({"path.buffer": "1bdp", "flow.large.cc": "bbr"})
    'buffer 1bdp, large bbr'
    """
    return ", ".join(setting(key, value) for key, value in point.items())
