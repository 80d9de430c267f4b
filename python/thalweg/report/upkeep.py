"""How well engines kept up: what they measured of themselves, in words and with units."""

from dataclasses import dataclass

from thalweg import analysis
from thalweg.analysis import OwnMeasure
from thalweg.report.content import Content
from thalweg.report.numbers import NARROW

KNOWN = {
    "relay_lateness_p50_us": "Lateness of packets at the relay, median",
    "relay_lateness_p99_us": "Lateness of packets at the relay, 99th percentile",
    "relay_lateness_p999_us": "Lateness of packets at the relay, 99.9th percentile",
    "relay_lateness_worst_us": "Lateness of packets at the relay, worst",
    "relay_lateness_max_us": "Lateness of packets at the relay, worst",
    "relay_dropped_packets": "Packets that the kernel dropped before the relay",
    "relay_packets": "Packets that the relay carried",
    "relay_cpu_percent": "Share of a CPU that the relay used",
    "sampling_cpu_percent": "Share of a CPU that sampling used",
    "sampling_interval_p99_us": "Time between two samples, 99th percentile",
    "samples_missed": "Samples that came too late to be taken",
}
"""Names of what our engines measure, and how a person says them; others are shown as they are."""

UNITS = {"us": "µs", "percent": "%", "packets": "", "bytes": "B", "bps": "bit/s"}
"""Last words of names, and the units that they stand for."""


@dataclass(frozen=True)
class Line:
    """A measure of one run."""

    run: str
    """Only in the first line of a run."""
    title: str
    name: str
    n: int
    median: str
    largest: str


def lines(content: Content) -> list[Line]:
    """Write a line per run and measure; none of engines that measure nothing, such as the simulator."""
    found = []
    for label, run in zip(content.labels, content.runs, strict=True):
        for number, each in enumerate(analysis.measured(run)):
            title = KNOWN.get(each.name, each.name)
            median, largest = (_value(each, value) for value in (each.median, each.largest))
            found.append(Line("" if number else label, title, each.name, each.n, median, largest))
    return found


def _value(measure: OwnMeasure, value: float) -> str:
    """Write a value; the unit of a name that is shown as it is stands in the name."""
    text = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    unit = UNITS.get(measure.name.rpartition("_")[2], "") if measure.name in KNOWN else ""
    return f"{text}{NARROW}{unit}" if unit else text
