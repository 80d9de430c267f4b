"""Network conditions that a fuzzer composes: elements, each of which can be present or absent.

Elements are converted to keys of a scenario.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from thalweg.scenario import Document
from thalweg.scenario.document import Raw, TomlValue, Value
from thalweg.scenario.text import quantities
from thalweg.search.parameters import Kind, Parameter

OUTAGE_BPS = 1000
"""Rate of a path during an outage: so low that a full-size packet takes seconds."""

KINDS: Mapping[str, Mapping[str, Kind]] = {
    "rate": {"at": "time", "to": "rate"},
    "rtt": {"at": "time", "to": "time"},
    "outage": {"at": "time", "for": "time"},
    "loss": {"at": "time", "for": "time", "ratio": "number"},
    "policer": {"rate": "rate", "burst": "size"},
    "aggregation": {"interval": "time"},
    "jitter": {"up_to": "time"},
    "buffer": {"to": "bdp"},
    "cross": {"at": "time", "cc": "choice", "size": "size"},
}
"""Kinds of elements, and their values. `at` is the start."""

IN_STEPS = ("rate", "rtt", "outage", "loss")

ONCE = ("policer", "aggregation", "jitter", "buffer")
"""Kinds with at most one element per path."""

PRESENT = "present"
"""Name of the parameter that determines whether an element is present."""

NANOS = 10**9


@dataclass(frozen=True)
class Element:
    """One condition."""

    kind: str
    values: Mapping[str, Value]

    def start_ns(self) -> int:
        """Start time."""
        return quantities.time(str(self.values.get("at", "0s")))

    def end_ns(self) -> int:
        """End time, for elements that have one."""
        return self.start_ns() + quantities.time(str(self.values["for"]))


Conditions = Sequence[Element]


def parameters(kind: str, count: int, ranges: Mapping[str, Parameter]) -> Iterator[Parameter]:
    """Yield the parameters of up to `count` elements of a kind; `ranges` are the ranges of its values."""
    for number in range(count):
        prefix = f"{kind}.{number}"
        yield Parameter(f"{prefix}.{PRESENT}", "choice", choices=(False, True))
        for name, parameter in ranges.items():
            yield replace(parameter, address=f"{prefix}.{name}")


def elements(settings: Mapping[str, Value]) -> list[Element]:
    """Return the elements of a candidate's settings."""
    listed = []
    for address, value in settings.items():
        kind, number, name = address.split(".")
        if name == PRESENT and value is True:
            prefix = f"{kind}.{number}."
            values = {key: settings[prefix + key] for key in KINDS[kind] if prefix + key in settings}
            listed.append(Element(kind, values))
    return listed


def applied(document: Document, conditions: Conditions) -> Document:
    """Return the scenario with conditions applied."""
    raw = dict(document.raw)
    path = dict(raw["path"]) if isinstance(raw["path"], dict) else {}
    if any(condition.kind in IN_STEPS for condition in conditions):
        path["steps"] = _steps(path, conditions)
        path.pop("rate", None)
    for condition in conditions:
        values = condition.values
        if condition.kind == "policer":
            path["policer"] = {"rate": values["rate"], "burst": values["burst"]}
        elif condition.kind == "aggregation":
            path["aggregation"] = {"interval": values["interval"]}
        elif condition.kind == "jitter":
            path["jitter"] = values["up_to"]
        elif condition.kind == "buffer":
            path["buffer"] = values["to"]
    cross = [condition for condition in conditions if condition.kind == "cross"]
    raw["path"] = path
    raw["flow"] = [*document.flows, *(_flow(number, condition) for number, condition in enumerate(cross, 1))]
    return replace(document, raw=raw, searches={})


def _flow(number: int, element: Element) -> Raw:
    values = element.values
    return {"name": f"cross-{number}", "cc": values["cc"], "size": values["size"], "start": values["at"]}


def _steps(path: Raw, conditions: Conditions) -> list[TomlValue]:
    """Merge the conditions over time to steps: at every change, the new rate, round-trip time and loss."""
    times = {0}
    for condition in conditions:
        if condition.kind in IN_STEPS:
            times.add(condition.start_ns())
            if "for" in condition.values:
                times.add(condition.end_ns())
    has_rtt, has_loss = (any(condition.kind == kind for condition in conditions) for kind in ("rtt", "loss"))
    steps: list[TomlValue] = []
    for at_ns in sorted(times):
        step: Raw = {"at": quantities.exact_time_text(at_ns), "rate": _rate(path, conditions, at_ns)}
        if has_rtt:
            step["rtt"] = _last(conditions, "rtt", at_ns, path["rtt"])
        if has_loss:
            step["loss"] = _loss(path, conditions, at_ns)
        if not steps or {**step, "at": ""} != {**_table(steps[-1]), "at": ""}:
            steps.append(step)
    return steps


def _table(value: TomlValue) -> Raw:
    assert isinstance(value, dict)
    return value


def _rate(path: Raw, conditions: Conditions, at_ns: int) -> TomlValue:
    is_out = any(
        condition.kind == "outage" and condition.start_ns() <= at_ns < condition.end_ns() for condition in conditions
    )
    return quantities.rate_text(OUTAGE_BPS) if is_out else _last(conditions, "rate", at_ns, path["rate"])


def _last(conditions: Conditions, kind: str, at_ns: int, default: TomlValue) -> TomlValue:
    before = [condition for condition in conditions if condition.kind == kind and condition.start_ns() <= at_ns]
    return max(before, key=Element.start_ns).values["to"] if before else default


def _loss(path: Raw, conditions: Conditions, at_ns: int) -> TomlValue:
    ratios = [
        float(condition.values["ratio"])
        for condition in conditions
        if condition.kind == "loss" and condition.start_ns() <= at_ns < condition.end_ns()
    ]
    usual = path.get("loss", 0.0)
    return max(ratios) if ratios else usual
