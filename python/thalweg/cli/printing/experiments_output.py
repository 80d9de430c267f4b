"""The experiments of a plan as a table."""

import shutil
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from thalweg import printable
from thalweg.cli.printing import output
from thalweg.plan.models import (
    BufferBytes,
    CapacityProfile,
    CapacitySteps,
    CapacityTrace,
    Experiment,
    Flow,
    Link,
    LoadApp,
    LoadRequests,
    LoadSizes,
    QueueFifo,
    RepeatGap,
    RepeatPoisson,
)
from thalweg.scenario import Document, departures, presets, sweep, traces
from thalweg.scenario.document import TomlValue
from thalweg.scenario.values import table as table_of

RATES = (("Gbps", 10**9), ("Mbps", 10**6), ("kbps", 10**3))
SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
TIMES = (("s", 10**9), ("ms", 10**6), ("us", 10**3))

ABOUT = {"name", "about", "source"}
"""Keys that describe the scenario and not its experiments."""

IN_ROWS = {"path.rate", "path.trace", "path.rtt", "path.buffer", "duration"}
"""Keys whose resolved values are in the row of every point."""

IN_FLOW_ROWS = {
    "name",
    "cc",
    "size",
    "start",
    "count",
    "repeat.gap",
    "repeat.until",
    "repeat.count",
    "repeat.arrivals",
    "requests.size",
    "requests.count",
}
"""Keys of a flow that are in its row."""

SWEPT_ROWS = {"rate": "path.rate", "rtt": "path.rtt", "ends": "duration"}
"""Rows that are omitted if the sweep sets their key, because they would repeat the value."""

MIN_WIDTH = 30

T = TypeVar("T")


def table(points: Sequence[Experiment], document: Document) -> str:
    """Return the table of points (one experiment of each), with keys that differ from their defaults."""
    rows_of = _Rows(document)
    keys, rows = list(points[0].sweep), [rows_of.of(point) for point in points]
    others = _others(document)
    if len(points) == 1:
        values = [[key, _value(value)] for key, value in points[0].sweep.items()]
        return output.table(["key", "value"], _wrapped([*values, *rows[0].items(), *others[0].items()]))
    names = dict.fromkeys(key for row in (*rows, *others) for key in row)
    rows = [{key: (row | other).get(key, "") for key in names} for row, other in zip(rows, others, strict=True)]
    same = [key for key in names if all(row[key] == rows[0][key] for row in rows)]
    changing = [key for key in names if key not in same]
    above = [[key, rows[0][key]] for key in same]
    lines = [
        [str(point.experiment), *(_value(point.sweep[key]) for key in keys), *(row[key] for key in changing)]
        for point, row in zip(points, rows, strict=True)
    ]
    below = output.table(["point", *keys, *changing], lines, numbers=[0])
    tables = [output.table(["at every point", ""], _wrapped(above))] if above else []
    if sources := _sources(points):
        return "\n\n".join([*tables, below, output.table(["preset", "source"], _wrapped(sources))])
    return "\n\n".join([*tables, below])


def _wrapped(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Split the values of rows with two columns into lines that fit the terminal, or 80 columns in a pipe."""
    rows = list(rows)
    columns = shutil.get_terminal_size().columns
    width = max(MIN_WIDTH, columns - len(output.GAP) - max(len(key) for key, _ in rows))
    return [
        [key if number == 0 else "", line]
        for key, value in rows
        for number, line in enumerate(
            textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False) or [""]
        )
    ]


def _others(document: Document) -> list[dict[str, str]]:
    """Return each point's keys that differ from their defaults and that neither the sweep nor other rows show."""
    swept, folder = document.swept, document.file.parent
    known: dict[tuple[str, int], dict[str, str]] = {}
    result = []
    for _, scenario in sweep.scenarios(document.raw, document.axes):
        rows: dict[str, str] = {}
        for key, value in scenario.items():
            # Points share equal values, which exist as long as the sweep.
            if (key, id(value)) not in known:
                shown = departures({key: value}).items()
                known[key, id(value)] = {
                    address: _other(address, value, folder)
                    for address, value in shown
                    if address not in swept and not _is_in_row(address)
                }
                if key == "path" and isinstance(value, dict) and {"rate", "trace"} <= value.keys():
                    known[key, id(value)]["path.trace"] = _trace(folder, str(value["trace"]))
            rows |= known[key, id(value)]
        result.append(rows)
    return result


def _sources(points: Sequence[Experiment]) -> list[list[str]]:
    values = dict.fromkeys((key, str(value)) for point in points for key, value in point.sweep.items())
    return [[name, source] for key, name in values if (source := presets.source(key, name))]


def _is_in_row(address: str) -> bool:
    first, _, below = address.partition(".")
    return address in ABOUT | IN_ROWS or (first == "flow" and below.partition(".")[2] in IN_FLOW_ROWS)


def _other(address: str, value: TomlValue, folder: Path) -> str:
    if address == "path.reverse.trace":
        return _trace(folder, str(value))
    source = presets.source(address, str(value))
    return f"{value}: {source}" if source else _value(value)


class _Rows:
    """Formats the rows of points; values that several points share are formatted once."""

    def __init__(self, document: Document) -> None:
        self._folder = document.file.parent
        self._trace = table_of(document.raw, "path").get("trace", "")
        self._swept = document.swept
        self._known: dict[tuple[int, str], str] = {}

    def of(self, point: Experiment) -> dict[str, str]:
        """Return the values of a point, except those that the sweep shows."""
        link = point.forward
        trace = str(point.sweep.get("path.trace", self._trace))
        row = {
            "rate": self._once(link, trace, lambda link: _rate(link, self._folder, trace)),
            "rtt": _time(point.rtt_ns),
            "buffer": self._once(link, "buffer", _buffer),
            **({} if isinstance(link.queue, QueueFifo) else {"queue": self._once(link, "queue", _queue)}),
            "ends": "when all flows have finished" if point.duration_ns is None else _time(point.duration_ns),
        }
        row = {key: text for key, text in row.items() if SWEPT_ROWS.get(key) not in self._swept}
        for flow in point.flows:
            row[f"flow {flow.name}"] = self._once(flow, "", self._flow)
        return row

    def _once(self, described: T, part: str, describe: Callable[[T], str]) -> str:
        key = id(described), part  # ids are unique, because experiments live as long as the plan
        if key not in self._known:
            self._known[key] = describe(described)
        return self._known[key]

    def _flow(self, flow: Flow) -> str:
        return _flow(flow) if f"flow.{flow.name}.cc" in self._swept else f"{flow.cc}: {_flow(flow)}"


def _value(value: object) -> str:
    """Return a value of the scenario as text.

    >>> _value([{"at": "0s", "rate": "40Mbps"}, {"at": "8s", "rtt": "80ms", "loss": 0.01}])
    '0s 40Mbps, 8s rtt 80ms loss 0.01'
    """
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    if isinstance(value, dict):
        # The units of times and rates tell them apart.
        unnamed = ("at", "rate")
        return " ".join(_value(inner) if key in unnamed else f"{key} {_value(inner)}" for key, inner in value.items())
    return printable.plain(value)


def _rate(link: Link, folder: Path, trace: str) -> str:
    if isinstance(link.capacity, CapacitySteps):
        rates = " > ".join(_scaled(step.rate_bps, "bps", RATES) for step in link.capacity.steps[:3])
        return rates + (" > ..." if len(link.capacity.steps) > 3 else "")
    return _trace(folder, trace) if isinstance(link.capacity, CapacityTrace | CapacityProfile) else "unlimited"


def _trace(folder: Path, name: str) -> str:
    """Return a description of a trace; from its name alone, a wrong unit would not be noticed."""
    return traces.in_cell(name, traces.read(folder / name))


def _buffer(link: Link) -> str:
    if isinstance(link.buffer, BufferBytes):
        return _size(link.buffer.bytes)
    return f"{link.buffer.packets} packets"


def _queue(link: Link) -> str:
    """Return a queue discipline with its parameters as text, as in `codel, target 5ms, interval 100ms, no ecn`."""
    parts = []
    for field, value in link.queue.model_dump(exclude={"kind"}, exclude_none=True).items():
        name, _, unit = field.rpartition("_")
        if unit in ("ns", "bytes", "bps"):
            units = {"ns": TIMES, "bytes": SIZES, "bps": RATES}[unit]
            parts.append(f"{name} {_scaled(value, {'ns': 'ns', 'bytes': 'B', 'bps': 'bps'}[unit], units)}")
        elif isinstance(value, bool):
            parts.append(field if value else f"no {field}")
        else:
            parts.append(f"{field} {value:g}")
    return ", ".join([link.queue.kind, *parts])


def _flow(flow: Flow) -> str:
    load = flow.load
    load_text = "unlimited"
    if isinstance(load, LoadSizes):
        load_text = "/".join(_size(size) for size in load.sizes_bytes[:3]) + (
            "/..." if len(load.sizes_bytes) > 3 else ""
        )
    elif isinstance(load, LoadApp):
        load_text = load.app.kind
    elif isinstance(load, LoadRequests):
        load_text = f"{load.count or 'endless'} requests of {_size(load.size_bytes)}"
    count = f" x {flow.count}" if flow.count > 1 else ""
    start = f" from {_time(flow.start_ns)}" if flow.start_ns else ""
    return f"{load_text}{count}{start}{_repeat(flow)}"


def _repeat(flow: Flow) -> str:
    repeat = flow.repeat
    if isinstance(repeat, RepeatGap):
        interval = f", every {_time(repeat.gap_ns)} after the last" if repeat.gap_ns else ", back to back"
    elif isinstance(repeat, RepeatPoisson):
        interval = f", at random every {_time(repeat.mean_gap_ns)}"
    else:
        return ""
    times = f", {repeat.count} times" if repeat.count is not None else ""
    return interval + times + (f" until {repeat.until} ends" if repeat.until else "")


def _time(ns: int) -> str:
    return _scaled(ns, "ns", TIMES)


def _size(size: int) -> str:
    return _scaled(size, "B", SIZES)


def _scaled(value: int, base: str, units: tuple[tuple[str, int], ...]) -> str:
    for unit, factor in units:
        if value >= factor:
            return f"{value / factor:.6g}{unit}"
    return f"{value}{base}"
