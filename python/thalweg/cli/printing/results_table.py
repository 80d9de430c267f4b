"""The table of a run's numbers: a row per point of the sweep and flow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thalweg import printable
from thalweg.cli.printing import output

if TYPE_CHECKING:
    import polars as pl

SHOWN = {"goodput": "goodput", "completion_time": "completion time", "retransmit_ratio": "retransmits"}
"""Measures of a flow in the table, with their headings."""

OF_COPIES = {"copies_jain": "Jain of copies"}

OF_APPS = {
    "completion_time_p99": "p99",
    "video_bitrate": "bitrate",
    "stall_time": "stalled",
    "page_time": "page",
}

MEASURES = (*SHOWN, *OF_COPIES, *OF_APPS)

UNITS = {"bit/s": ("Mbit/s", 1e6), "s": ("s", 1.0), "ratio": ("%", 0.01), "count": ("", 1.0), "1/s": ("1/s", 1.0)}
"""Displayed unit for each unit of measures, and its size in that unit."""


def lines(summary: "pl.DataFrame", keys: Sequence[str], limit: int | None = None) -> tuple[str, int]:
    """Return the table, with a row per point and flow, and the number of omitted rows.

    Args:
        summary: Rows of `thalweg.analysis.summary` with the measures `MEASURES`.
        keys: Swept keys.
        limit: Maximum number of lines; None: all.
    """
    from thalweg import analysis

    present = set(summary.drop_nulls("mean")["measure"])
    columns = {measure: title for measure, title in {**SHOWN, **OF_COPIES, **OF_APPS}.items() if measure in present}
    measured: dict[tuple[object, ...], dict[str, tuple[int, str]]] = {}
    for row in summary.to_dicts():
        if row["flow"] is not None and row["measure"] in columns:
            line = (row["experiment"], *(row[key] for key in keys), row["flow"], row["cc"])
            estimate = _estimate(row["unit"], row["mean"], row["low"], row["high"])
            measured.setdefault(line, {})[row["measure"]] = row["n"], estimate
    headings = [*keys, "flow", "cc", "n"]
    headings += [f"{title} ({UNITS[analysis.MEASURES[measure].unit][0]})" for measure, title in columns.items()]
    rows = []
    for (_, *names), measures in list(measured.items())[:limit]:
        n = max((n for n, _ in measures.values()), default=0)
        estimates = [measures[measure][1] if measure in measures else "-" for measure in columns]
        rows.append([*map(printable.plain, names), str(n), *estimates])
    return output.table(headings, rows, numbers=[len(keys) + 2]), len(measured) - len(rows)


def _estimate(unit: str, mean: float | None, low: float | None, high: float | None) -> str:
    if mean is None:
        return "-"
    size = UNITS[unit][1]
    if low is None or high is None:
        return f"{mean / size:.4g}"
    return f"{mean / size:.4g} [{low / size:.4g}, {high / size:.4g}]"
