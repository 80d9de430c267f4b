"""Results of `bench/scaling.py`, as lines of text and as a page with curves."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import polars as pl
from thalweg.report.drawing.figure import Figure, Scaled
from thalweg.report.drawing.paper import save

from measuring.growth import CURVES, Measured

LIMIT = 2.0
"""Growth of a cost or of memory over the range of sizes above which the page states a reason."""

REASONS = {
    (
        "flows",
        "without samples",
    ): "when an ACK arrives, the state of its connection has been evicted from the CPU caches",
    ("flows", "100 samples a second"): (
        "every flow is sampled, whether it sends or not: many flows on the same link have more samples than packets"
    ),
}
"""Reasons why a cost grows by more than `LIMIT`, by curve and series."""
MEMORY_REASONS = {
    ("flows", "without samples"): "the state of every open connection is in memory",
    ("flows", "100 samples a second"): "the state and the last sample of every open connection are in memory",
    ("rows", "advise"): "a narrow row per sample is kept, up to `--memory`; more rows are written to disk",
    ("experiments", "plan"): "the plan lists every experiment, and is built in memory",
    ("experiments", "engine"): "the plan lists every experiment, and is read into memory",
    ("experiments", "report"): "the page shows the measures of all experiments, and is built in memory",
}
"""Reasons why memory grows by more than `LIMIT`, by curve and series."""

Series = dict[tuple[str, str], list[Measured]]


def lines(measurements: Sequence[Measured]) -> Iterator[str]:
    """Describe each size of each series in a line."""
    for measured in measurements:
        yield (
            f"{measured.curve:<12} {measured.series:<21} {measured.size:>12,}: {_time(measured.cost_s):>8} per"
            f" {CURVES[measured.curve].unit}, {measured.cpu_s:8.2f} CPU s, {measured.peak_bytes / 2**20:7,.0f} MiB"
        )


def growth(values: Sequence[float]) -> float:
    """Return the largest factor by which a value exceeds one at a smaller size.

    >>> growth([4.0, 1.0, 3.0])
    3.0
    """
    return max((later / earlier for earlier, later in combinations(values, 2)), default=1.0)


def write(measurements: Sequence[Measured], page: Path, command: str) -> None:
    """Write the Markdown page, and its figures as SVG into a folder with the same name."""
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    figures = list(_figures(_by_series(measurements)))
    files = {figure.id: file.name for figure, file in zip(figures, save(figures, folder), strict=True)}
    page.write_text("\n".join(_page(_by_series(measurements), files, folder.name, command)) + "\n", encoding="utf-8")


def _by_series(measurements: Sequence[Measured]) -> Series:
    series: Series = {}
    for measured in measurements:
        series.setdefault((measured.curve, measured.series), []).append(measured)
    return series


def _figures(series: Series) -> Iterator[Figure]:
    for curve in dict.fromkeys(name for name, _ in series):
        of_curve = [point for (name, _), sizes in series.items() if name == curve for point in sizes]
        x = Scaled(CURVES[curve].size, is_log=True)
        cost = [(point, point.cost_s) for point in of_curve]
        memory = [(point, float(point.peak_bytes)) for point in of_curve]
        title = CURVES[curve].title
        yield Figure(f"{curve}-cost", title, "lines", _rows(cost), x=x, y=Scaled("CPU time", "s", is_log=True))
        yield Figure(f"{curve}-memory", f"{title}: peak memory", "lines", _rows(memory), x=x,
                     y=Scaled("Memory", "B", is_log=True))  # fmt: skip


def _rows(values: Sequence[tuple[Measured, float]]) -> pl.DataFrame:
    rows = [{"x": value.size, "y": y, "low": None, "high": None, "series": value.series} for value, y in values]
    return pl.DataFrame(rows, schema_overrides={"low": pl.Float64, "high": pl.Float64})


def _page(series: Series, files: dict[str, str], folder: str, command: str) -> Iterator[str]:
    yield "<!-- Written by bench/scaling.py: do not edit. -->"
    yield ""
    yield "# How costs grow"
    yield ""
    yield f"Written by `{command}`."
    yield "CPU seconds are those of whole processes, including their start; memory is the largest resident set."
    yield "Growth is the largest factor by which a number exceeds that of a smaller size."
    yield f"Above {LIMIT:g} the page gives the reason."
    for curve in dict.fromkeys(name for name, _ in series):
        yield ""
        yield f"## {CURVES[curve].title}"
        yield ""
        for kind in ("cost", "memory"):
            if name := files.get(f"{curve}-{kind}"):
                yield f"![{CURVES[curve].title}, {kind}]({folder}/{name})"
        yield ""
        yield f"| | {CURVES[curve].size} | per {CURVES[curve].unit} | CPU | memory |"
        yield "|---|---|---|---|---|"
        for (name, _), sizes in series.items():
            if name == curve:
                yield from map(_line, sizes)
        yield ""
        for (name, part), sizes in series.items():
            if name == curve:
                yield from _verdict(part, sizes)


def _line(measured: Measured) -> str:
    memory = f"{measured.peak_bytes / 2**20:,.0f} MiB"
    return f"| {measured.series} | {measured.size:,} | {_time(measured.cost_s)} | {measured.cpu_s:,.2f} s | {memory} |"


def _verdict(part: str, sizes: Sequence[Measured]) -> Iterator[str]:
    key = sizes[0].curve, part
    for what, values, reasons in (
        ("The cost", [size.cost_s for size in sizes], REASONS),
        ("Memory", [size.peak_bytes for size in sizes], MEMORY_REASONS),
    ):
        factor = growth(values)
        reason = f":\n  {reasons.get(key, 'the reason is not known')}" if factor > LIMIT else ""
        yield f"- {part}: {what.lower()} grows by a factor of {factor:.1f}{reason}."


def _time(seconds: float) -> str:
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
    size, unit = next((name for name in units if seconds >= name[0]), units[-1])
    return f"{seconds / size:.3g} {unit}"
