"""Output of a comparison: text or JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from thalweg import printable
from thalweg.cli.printing import evidence, output
from thalweg.cli.printing.results_table import UNITS
from thalweg.errors import Exit

if TYPE_CHECKING:
    from thalweg.analysis import Compared, Comparison
    from thalweg.results import Run

MAX_ROWS = 20

EVIDENCE = {code: extent for extent, code in evidence.CODES.items()}

METHOD = (
    "change: B against A with its 95 % interval (Welch for differences, Fieller for ratios; pts: points of a ratio);"
    " real: with Holm's correction, the probability of any false positive among all rows is at most 5 %"
)


def show(
    runs: Sequence["Run"],
    comparison: "Comparison",
    by: str | None,
    tolerance: float,
    *,
    every: bool,
    worse_first: bool,
) -> None:
    """Print a sentence, and the most important rows.

    With `worse_first`, real differences by which B is worse come first and are marked.
    """
    output.data(_sentence(comparison, by, tolerance))
    real, rows = comparison.real, comparison.rows
    if worse_first:
        output.data(f"B is worse in {sum(row.is_worse for row in real)} of {len(real)} real differences.")
        real, rows = (sorted(some, key=lambda row: not _is_real_and_worse(row)) for some in (real, rows))
    rows = rows if every else real[:MAX_ROWS]
    if rows:
        output.data("")
        output.data(_table(rows, by, mark_worse=worse_first))
    omitted = len(real) - len(rows)
    if omitted > 0:
        output.talk(f"{omitted} more real differences: --all prints every row")
    if comparison.of("too few") and not every:
        output.talk("--all prints the undecided rows; more repetitions (--repetitions of `thalweg run`) decide them")
    for name, run in zip("AB", runs, strict=False):
        output.talk(f"{name}: {run.path} (engine {run.engine} {run.meta.get('engine_version', '')}{_kernel(run)})")
    output.talk(METHOD)


def as_json(
    runs: Sequence["Run"],
    comparison: "Comparison",
    by: str | None,
    tolerance: float,
    code: Exit,
    cautions: Sequence[str],
) -> dict[str, object]:
    """Return all compared rows; `code` is the exit code if no difference is real."""
    return {
        "runs": [{"run": str(run.path), "name": run.name, "engine": run.engine} for run in runs],
        "by": by,
        "tolerance": tolerance,
        "method": METHOD,
        "evidence": EVIDENCE[code],
        "summary": _sentence(comparison, by, tolerance),
        "cautions": list(cautions),
        "real": len(comparison.real),
        "copies": len(comparison.of("copies")),
        "rows": [_row(row) for row in comparison.rows],
        "not_compared": list(comparison.alone),
    }


def _row(row: "Compared") -> dict[str, object]:
    from thalweg.analysis import MEASURES

    change, low, high = row.change
    return {
        "point": dict(row.pair.point),
        **({"values": list(row.pair.values)} if row.pair.values else {}),
        "flow": row.flow,
        "cc": list(row.ccs),
        "measure": row.measure,
        "unit": MEASURES[row.measure].unit,
        "first": asdict(row.first),
        "second": asdict(row.second),
        "difference": {"value": row.difference.value, "low": row.difference.low, "high": row.difference.high},
        "change": {"kind": "relative" if row.is_relative else "points", "value": change, "low": low, "high": high},
        "p": row.difference.p,
        "p_corrected": row.p,
        "verdict": row.verdict,
    }


def _sentence(comparison: "Comparison", by: str | None, tolerance: float) -> str:
    if not comparison.rows:
        return f"Nothing was compared: {_why_nothing(comparison)}."
    rows, undecided, small = len(comparison.rows), len(comparison.of("too few")), len(comparison.of("too small"))
    copies = len(comparison.of("copies"))
    aside = [
        *([f"{small} smaller than the tolerance of {tolerance * 100:g} %"] if small else []),
        *([f"{copies} without a verdict, because their repetitions are copies of one another"] if copies else []),
        *([f"{undecided} with too few repetitions to decide"] if undecided else []),
    ]
    rest = f" ({', '.join(aside)})" if aside else ""
    if not comparison.has_verdicts:
        return f"No verdict on any of {rows} comparisons: {', '.join(aside)}."
    if not comparison.real:
        return f"No real difference in {rows} comparisons{rest}."
    top = comparison.real[0]
    conditions = [f"{key} = {printable.plain(value)}" for key, value in top.pair.point.items()]
    conditions += [f"{by} = {_both(*map(printable.plain, top.pair.values))}"] if top.pair.values else []
    point = ", ".join(conditions)
    return (
        f"{len(comparison.real)} of {rows} differences are real{rest}; the largest: {_change(top)[0]} {_title(top)}"
        f" of {top.flow or 'the path'}{f' at {point}' if point else ''}."
    )


def _why_nothing(comparison: "Comparison") -> str:
    if not comparison.alone:
        return "neither run has a value of these measures and flows"
    suffix = f", and {len(comparison.alone) - 1} more" if comparison.alone[1:] else ""
    return f"{comparison.alone[0]}{suffix}"


def _is_real_and_worse(row: "Compared") -> bool:
    return row.verdict == "real" and row.is_worse


def _table(rows: Sequence["Compared"], by: str | None, *, mark_worse: bool) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row.pair.point))
    with_cc = any(row.ccs[0] != row.ccs[1] for row in rows) and not (by or "").endswith(".cc")
    headings = [*keys, *([by] if by else []), "flow", *(["cc"] if with_cc else []), "measure", "n", "A", "B"]
    lines = [
        [
            *(printable.plain(row.pair.point[key]) for key in keys),
            *([_both(*map(printable.plain, row.pair.values))] if row.pair.values else []),
            row.flow or "(path)",
            *([_both(*(cc or "" for cc in row.ccs))] if with_cc else []),
            _title(row, with_unit=True),
            _both(str(row.first.n), str(row.second.n)),
            _value(row, row.first.mean),
            _value(row, row.second.mean),
            *_change(row),
            "real, worse" if mark_worse and _is_real_and_worse(row) else row.verdict,
        ]
        for row in rows
    ]
    columns = range(len(headings) - 3, len(headings) + 1)
    return output.table([*headings, "change", "95 % interval", "verdict"], lines, numbers=columns)


def _both(first: str, second: str) -> str:
    """Return the values of A and B as text; an equal value is written once.

    >>> _both("cubic", "bbr"), _both("10", "10")
    ('cubic > bbr', '10')
    """
    return first if first == second else f"{first} > {second}"


def _title(row: "Compared", *, with_unit: bool = False) -> str:
    from thalweg.analysis import MEASURES

    unit = UNITS[MEASURES[row.measure].unit][0]
    return f"{row.measure} ({unit})" if with_unit and unit else row.measure


def _value(row: "Compared", mean: float) -> str:
    from thalweg.analysis import MEASURES

    return f"{mean / UNITS[MEASURES[row.measure].unit][1]:.4g}"


def _change(row: "Compared") -> tuple[str, str]:
    change, low, high = row.change
    if change is None:
        return "new", "-"  # a change from zero has no ratio
    unit = "%" if row.is_relative else "pts"
    interval = "-" if low is None or high is None else f"[{_signed(low)}, {_signed(high)}]"
    return f"{_signed(change)} {unit}", interval


def _signed(change: float) -> str:
    """Return a change as a signed percentage, without insignificant digits.

    >>> _signed(0.123), _signed(-0.00456), _signed(12.345), _signed(0.0)
    ('+12.3', '-0.456', '+1234', '0')
    """
    if not change:
        return "0"
    return f"{change * 100:+.3g}" if abs(change) < 9.995 else f"{change * 100:+.0f}"


def _kernel(run: "Run") -> str:
    """Return the kernel whose TCP ran as text; empty for the simulator."""
    _, _, kernel = str(run.meta.get("result_version", "")).partition(" on ")
    return f", {kernel}" if kernel else ""
