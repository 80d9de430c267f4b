"""Formats measures of records as text, each with a common unit for all algorithms."""

from collections.abc import Sequence
from datetime import UTC, datetime

from thalweg.records import Spread, Summary
from thalweg.report.text.numbers import scale_for

MEANS = ("retransmit_ratio", "app_limited", "rwnd_limited", "sndbuf_limited")
"""Measures for which the mean is more informative than quantiles, because they are often zero."""

MIDDLE = (0.1, 0.9)


def cells(spreads: Sequence[Spread | None], unit: str, *, is_mean: bool = False) -> tuple[str, list[str]]:
    """Return the common unit, and medians with the range of the middle 80 %, or means, as text; `-` if missing."""
    present = [spread for spread in spreads if spread]
    middles = [spread.mean if is_mean else spread.quantile(0.5) for spread in present]
    name, size = "BDP", 1.0
    if unit:
        scale = scale_for(unit, middles)
        name, size = scale.unit, scale.size
    return name, [_cell(spread, size, is_mean) if spread else "-" for spread in spreads]


def _cell(spread: Spread, size: float, is_mean: bool) -> str:
    if is_mean:
        return f"{spread.mean / size:.4g}"
    low, high = (f"{spread.quantile(share) / size:.4g}" for share in MIDDLE)
    return f"{spread.quantile(0.5) / size:.4g} [{low}, {high}]"


def about_untouched(summary: Summary) -> str | None:
    """Return a caution about connections whose algorithm `tune` did not choose."""
    rows = sum(it.connections + it.transfers for it in summary.counts["assignment"] if it.value == "untouched")
    if not rows:
        return None
    return (
        f"In {rows:,} rows, `tune` left the algorithm alone, as for private addresses. They count here, so algorithms"
        " are not compared fairly. `thalweg advise` leaves them out."
    )


def period(first_us: int | None, last_us: int | None) -> str:
    """Format a time range in UTC; an unknown end is a question mark.

    >>> period(1795304248000000, 1795304308000000)
    '2026-11-21 23:37:28 to 23:38:28'
    >>> period(1795304248000000, None)
    '2026-11-21 23:37:28 to ?'
    """
    first, last = (None if us is None else datetime.fromtimestamp(us // 1_000_000, UTC) for us in (first_us, last_us))
    is_one_day = first and last and first.date() == last.date()
    begin = f"{first:%Y-%m-%d %H:%M:%S}" if first else "?"
    end = f"{last:{'%H:%M:%S' if is_one_day else '%Y-%m-%d %H:%M:%S'}}" if last else "?"
    return f"{begin} to {end}"
