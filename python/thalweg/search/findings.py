"""Findings of a fuzzer, as a sentence and as a scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from thalweg.report.text.labels import joined
from thalweg.report.text.numbers import amount, per_cent
from thalweg.scenario import Document
from thalweg.scenario.text.quantities import time_text
from thalweg.scenario.toml_text import toml
from thalweg.search.conditions import Conditions, Element, applied
from thalweg.search.failures import Failure

NANOS = 10**9


@dataclass(frozen=True)
class Confirmed:
    """Result of another engine for a finding."""

    engine: str
    repetitions: int
    failing: int
    """Number of repetitions that also fail."""
    value: float | None
    """Mean of the measure on the other engine."""
    why_not: str = ""

    @property
    def text(self) -> str:
        """The verdict as text."""
        if self.why_not:
            return f"cannot run on {self.engine}: {self.why_not}"
        if not self.failing:
            return f"does not occur on {self.engine}"
        ratio = "" if self.failing == self.repetitions else f", in {self.failing} of {self.repetitions} repetitions"
        return f"also occurs on {self.engine}{ratio}"


@dataclass(frozen=True)
class Finding:
    """A failure, and the minimal conditions that cause it."""

    failure: Failure
    conditions: Conditions
    values: Sequence[float]
    """Value of the measure in each repetition."""
    candidate: int | None
    """Number of the candidate that was shrunk; None: the scenario as written."""
    tried: int
    """Number of evaluations by shrinking, including those whose result was known."""
    confirmed: Confirmed | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of its elements; findings of one failure with the same kinds are duplicates."""
        return frozenset(condition.kind for condition in self.conditions)


def sentence(document: Document, finding: Finding) -> str:
    """Describe the failure and its conditions in one sentence."""
    failure, term = finding.failure, finding.failure.bound.term
    mean = sum(finding.values) / len(finding.values)
    duration = f" for {failure.window_s:g} s" if failure.window_s else ""
    duration += f" (after {failure.after_s:g} s)" if failure.after_s else ""
    ccs = joined([f"`{cc}`" for cc in dict.fromkeys(str(flow["cc"]) for flow in document.flows)])
    conditions = joined([_condition(element) for element in ordered(finding.conditions)]) or "no condition applies"
    return f"With {ccs}, `{term}` is {_amount(mean, term.unit)}{duration} when {conditions}."


def ordered(conditions: Conditions) -> list[Element]:
    """Return conditions in the order of the description: permanent ones first, then by start time."""
    return sorted(conditions, key=lambda element: ("at" in element.values, element.start_ns(), element.kind))


def scenario_text(document: Document, finding: Finding, name: str) -> str:
    """Return the scenario of a finding as TOML."""
    raw = dict(applied(document, finding.conditions).raw)
    raw |= {"name": name, "about": sentence(document, finding)}
    first = ("name", "about")
    rest = {key: value for key, value in raw.items() if key not in first}
    head = f"# Found by `thalweg fuzz`, and shrunk: {finding.failure.text}\n"
    return head + toml({**{key: raw[key] for key in first}, **rest})


def as_json(document: Document, finding: Finding) -> dict[str, object]:
    """Return a finding for `--json`."""
    return {
        "failure": finding.failure.name,
        "sentence": sentence(document, finding),
        "conditions": [{"kind": element.kind, **element.values} for element in ordered(finding.conditions)],
        "values": list(finding.values),
        "unit": finding.failure.bound.term.unit,
        "candidate": finding.candidate,
        "experiments_of_shrinking": finding.tried,
        "confirmed": {**asdict(finding.confirmed), "text": finding.confirmed.text} if finding.confirmed else None,
    }


def _condition(element: Element) -> str:
    values: Mapping[str, object] = element.values
    at = values.get("at")
    match element.kind:
        case "rate":
            return f"the rate becomes {values['to']} at {at}"
        case "rtt":
            return f"the round-trip time becomes {values['to']} at {at}"
        case "outage":
            return f"the path has an outage from {at} to {time_text(element.end_ns())}"
        case "loss":
            lost = per_cent(float(str(values["ratio"])))
            return f"{lost} of the packets are lost from {at} to {time_text(element.end_ns())}"
        case "policer":
            return f"a policer limits the rate to {values['rate']}, with a bucket of {values['burst']}"
        case "aggregation":
            return f"packets leave together every {values['interval']}"
        case "jitter":
            return f"delays vary by up to {values['up_to']}"
        case "buffer":
            return f"the buffer has {values['to']}"
        case _:
            return f"a {values['cc']} flow of {values['size']} starts at {at}"


def _amount(value: float, unit: str) -> str:
    return amount(value, unit) if unit in ("bit/s", "s") else per_cent(value) if unit == "ratio" else f"{value:.4g}"
