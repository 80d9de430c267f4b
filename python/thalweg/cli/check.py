"""`thalweg check`: is the scenario right, and which experiments does it stand for?"""

from itertools import groupby
from typing import Annotated

import typer

from thalweg import engine
from thalweg.cli import output
from thalweg.cli.options import EngineName, File, Overrides
from thalweg.cli.prepared import prepare
from thalweg.plan import copies_warning
from thalweg.plan.models import (
    BufferBytes,
    CapacitySteps,
    CapacityTrace,
    Experiment,
    Flow,
    Link,
    LoadRequests,
    LoadSizes,
    RepeatGap,
    RepeatPoisson,
)

EPILOG = "Example: thalweg check scenarios/quickstart.toml"

RATES = (("Gbps", 10**9), ("Mbps", 10**6), ("kbps", 10**3))
SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
TIMES = (("s", 10**9), ("ms", 10**6), ("us", 10**3))


def command(
    file: File,
    engine_name: EngineName = engine.DEFAULT,
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole plan as JSON.")] = False,
) -> None:
    """Check a scenario, and show its experiments."""
    plan, known = prepare(file, engine_name, overrides or [])
    if warning := copies_warning(plan, known.engines[plan.engine]):
        output.talk(f"warning: {warning}")
    if as_json:
        output.data_json(plan.model_dump())
        return
    points = [list(group) for _, group in groupby(plan.experiments, key=lambda each: each.experiment)]
    output.data(_table([repetitions[0] for repetitions in points]))
    many, each = len(plan.experiments), len(points[0])
    output.talk(
        f"{file} is right: {_count(many, 'experiment')} ({_count(len(points), 'point')}, "
        f"{_count(each, 'repetition')} each) for the engine {plan.engine}"
    )


def _table(points: list[Experiment]) -> str:
    """Write a line per point, and above them what is the same at all points."""
    keys = list(points[0].sweep)
    rows = [_row(point) for point in points]
    same = [key for key in rows[0] if all(row[key] == rows[0][key] for row in rows)]
    if len(points) == 1:
        swept = [[key, _value(value)] for key, value in points[0].sweep.items()]
        return output.table(["key", "value"], [*swept, *rows[0].items()])
    above = output.table(["at every point", ""], [[key, rows[0][key]] for key in same])
    headings = ["point", *keys, *(key for key in rows[0] if key not in same)]
    lines = [
        [
            str(point.experiment),
            *(_value(point.sweep[key]) for key in keys),
            *(row[key] for key in row if key not in same),
        ]
        for point, row in zip(points, rows, strict=True)
    ]
    return "\n\n".join([*([above] if same else []), output.table(headings, lines, numbers=[0])])


def _row(experiment: Experiment) -> dict[str, str]:
    """Describe a point; what the sweep itself shows is left out of the flows."""
    row = {
        "rate": _rate(experiment.forward),
        "rtt": _time(experiment.rtt_ns),
        "buffer": _buffer(experiment.forward),
        "ends": "when all are done" if experiment.duration_ns is None else _time(experiment.duration_ns),
    }
    for flow in experiment.flows:
        is_swept = f"flow.{flow.name}.cc" in experiment.sweep
        row[f"flow {flow.name}"] = _flow(flow) if is_swept else f"{flow.cc}: {_flow(flow)}"
    return row


def _value(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _rate(link: Link) -> str:
    if isinstance(link.capacity, CapacitySteps):
        rates = " > ".join(_scaled(step.rate_bps, "bps", RATES) for step in link.capacity.steps[:3])
        return rates + (" > ..." if len(link.capacity.steps) > 3 else "")
    return f"trace {link.capacity.trace[:8]}" if isinstance(link.capacity, CapacityTrace) else "unlimited"


def _buffer(link: Link) -> str:
    if isinstance(link.buffer, BufferBytes):
        return _size(link.buffer.bytes)
    return f"{link.buffer.packets} packets"


def _flow(flow: Flow) -> str:
    load = flow.load
    what = "unlimited"
    if isinstance(load, LoadSizes):
        what = "/".join(_size(size) for size in load.sizes_bytes[:3]) + ("/..." if len(load.sizes_bytes) > 3 else "")
    elif isinstance(load, LoadRequests):
        what = f"{load.count or 'endless'} requests of {_size(load.size_bytes)}"
    count = f" x {flow.count}" if flow.count > 1 else ""
    start = f" from {_time(flow.start_ns)}" if flow.start_ns else ""
    return f"{what}{count}{start}{_repeat(flow)}"


def _repeat(flow: Flow) -> str:
    repeat = flow.repeat
    if isinstance(repeat, RepeatGap):
        how = f", every {_time(repeat.gap_ns)} after the last" if repeat.gap_ns else ", back to back"
    elif isinstance(repeat, RepeatPoisson):
        how = f", at random every {_time(repeat.mean_gap_ns)}"
    else:
        return ""
    times = f", {repeat.count} times" if repeat.count is not None else ""
    return how + times + (f" until {repeat.until} ends" if repeat.until else "")


def _time(ns: int) -> str:
    return _scaled(ns, "ns", TIMES)


def _size(size: int) -> str:
    return _scaled(size, "B", SIZES)


def _scaled(value: int, base: str, units: tuple[tuple[str, int], ...]) -> str:
    """Write a value in the largest unit that it reaches, to six digits."""
    for unit, factor in units:
        if value >= factor:
            return f"{value / factor:.6g}{unit}"
    return f"{value}{base}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
