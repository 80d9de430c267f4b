"""The part of a scenario that an engine can run: points whose congestion controls it lacks are excluded."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from thalweg.engine import Algorithm, Engine
from thalweg.plan.experiments import make
from thalweg.plan.models import Experiment, Plan
from thalweg.scenario import Document
from thalweg.scenario.values import table


@dataclass(frozen=True)
class Possible:
    """A plan without the points that the engine cannot run."""

    points: list[Experiment]
    """One experiment for each point of the sweep, whether or not the engine can run it."""
    plan: Plan | None
    """The plan; None if the engine can run no point."""
    reasons: dict[int, str]
    """Reasons why the engine cannot run a point, by point."""


def possible(document: Document, engine: Engine, engines: Mapping[str, Engine], *, any_cc: bool = False) -> Possible:
    """Plan the part of a checked scenario that `engine` can run.

    With `any_cc`, congestion controls that no engine has here are excluded instead of reported as mistakes.

    Raises:
        ThalwegErrors: If the engine lacks anything but congestion controls, or, without `any_cc`, no engine has one of
            these.
    """
    # Planning must not reject the algorithms that this engine lacks.
    algorithms = _named(document) if any_cc else {}
    for other in (*engines.values(), engine):
        algorithms |= other.algorithms
    full_plan = make(document, replace(engine, algorithms=algorithms), engines)
    points = list({experiment.experiment: experiment for experiment in reversed(full_plan.experiments)}.values())[::-1]
    reasons = {}
    for point in points:
        lacking = list(
            dict.fromkeys(
                flow.cc
                for flow in point.flows
                if flow.program is None and flow.cc_file is None and flow.cc not in engine.algorithms
            )
        )
        if lacking:
            names = ", ".join(f"`{name}`" for name in lacking)
            explanations = "".join(f": {engine.lacks[name].why}" for name in lacking if name in engine.lacks)
            reasons[point.experiment] = f"the engine {engine.name} has no congestion control {names} here{explanations}"
    rest = [experiment for experiment in full_plan.experiments if experiment.experiment not in reasons]
    return Possible(points, full_plan.model_copy(update={"experiments": rest}) if rest else None, reasons)


def _named(document: Document) -> dict[str, Algorithm]:
    names = [flow.get("cc") for flow in document.flows]
    for key, values in document.swept.items():
        if key.startswith("flow.") and key.endswith(".cc"):
            names += values
    params = {param: "" for flow in document.flows for param in table(flow, "cc_params")}
    return {name: Algorithm(name, "", params) for name in names if isinstance(name, str)}
