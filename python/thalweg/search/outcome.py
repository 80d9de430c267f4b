"""Results of a search: as JSON, as a table, and as text."""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from thalweg.analysis import Estimate
from thalweg.report.files import replace as write_file
from thalweg.report.text.labels import NOTHING, value_text
from thalweg.report.text.numbers import Scale, scale_for
from thalweg.search.candidates import Candidate, front
from thalweg.search.planning import Planner
from thalweg.search.table import Search
from thalweg.search.terms import Constraint, Objective
from thalweg.search.verifying import Verified, winners

DOCUMENT, CANDIDATES = "search.json", "candidates.parquet"

BROKEN = " broken"

FORMAT = 1


@dataclass(frozen=True)
class Outcome:
    """All results of a search."""

    planner: Planner
    default: Candidate
    candidates: Sequence[Candidate]
    importances: Sequence[dict[str, float]] = ()
    """Importances by objective, then by parameter."""
    verified: Sequence[Verified] = field(default=())

    @property
    def search(self) -> Search:
        """Definition of the search."""
        return self.planner.search

    @property
    def front(self) -> list[Candidate]:
        """The Pareto front; with one objective, the best candidate, or several with the same mean."""
        return front(self.candidates, self.search)

    @property
    def shown(self) -> list[Candidate]:
        """Candidates of the table: the front, or with one objective the best ones."""
        return self.front if len(self.search.objectives) > 1 else winners(self.candidates, self.search)

    @property
    def failed(self) -> list[Candidate]:
        """Candidates that failed."""
        return [candidate for candidate in self.candidates if candidate.failed]

    @property
    def cautions(self) -> list[str]:
        """Cautions for the reader."""
        cautions = []
        if self.default.failed:
            cautions.append(f"the default has no values: {self.default.failed}")
        if self.failed:
            first = self.failed[0]
            cautions.append(
                f"{len(self.failed)} of {len(self.candidates)} candidates failed; {first.name}: {first.failed}"
            )
        if self.planner.repetitions == 1:
            cautions.append("each point was run once, so there are no intervals: set repetitions to 3 or more")
        if not self.shown and len(self.failed) < len(self.candidates):
            cautions.append("no candidate meets all constraints")
        for verified in self.verified:
            if not verified.is_held_out:
                cautions.append(
                    f"no points are held out: on {verified.engine} the best candidates were run at the points of the"
                    " search, with other seeds"
                )
            if verified.untrustworthy:
                are = "experiment is" if verified.untrustworthy == 1 else "experiments are"
                cautions.append(f"on {verified.engine}, {verified.untrustworthy} {are} untrustworthy, and left out")
            for candidate in verified.candidates:
                if candidate.failed:
                    name = "the default" if candidate.number is None else f"candidate {candidate.name}"
                    cautions.append(f"on {verified.engine}, {name} has no values: {candidate.failed}")
        return cautions


def write(outcome: Outcome, folder: Path) -> None:
    """Write the JSON document and the table of all candidates.

    Raises:
        OSError: If a file cannot be written.
    """
    buffer = io.BytesIO()
    frame(outcome).write_parquet(buffer)
    write_file(folder / CANDIDATES, buffer.getvalue())
    write_file(folder / DOCUMENT, (json.dumps(as_json(outcome), indent=2) + "\n").encode())


def frame(outcome: Outcome) -> pl.DataFrame:
    """Return one row per candidate, as documented in docs/reference/searches.md."""
    search, best = outcome.search, {candidate.number for candidate in outcome.front}
    columns: dict[str, list[object]] = {
        "candidate": [candidate.number for candidate in outcome.candidates],
        "state": [
            "failed" if candidate.failed else "stopped" if candidate.stopped else "complete"
            for candidate in outcome.candidates
        ],
        "why": [candidate.failed or candidate.stopped or None for candidate in outcome.candidates],
        "repetitions": [candidate.repetitions for candidate in outcome.candidates],
        "feasible": [
            candidate.is_feasible(search) if candidate.is_measured else None for candidate in outcome.candidates
        ],
        "best": [candidate.number in best for candidate in outcome.candidates],
    }
    for parameter in search.parameters:
        columns[parameter.address] = [candidate.settings[parameter.address] for candidate in outcome.candidates]
    for number, quantity in enumerate(search.quantities):
        estimates = [candidate.estimates[number] if candidate.is_measured else None for candidate in outcome.candidates]
        columns[quantity.name] = [estimate.mean if estimate else None for estimate in estimates]
        columns[f"{quantity.name} low"] = [estimate.low if estimate else None for estimate in estimates]
        columns[f"{quantity.name} high"] = [estimate.high if estimate else None for estimate in estimates]
    return pl.DataFrame(columns, strict=False, infer_schema_length=None)


def as_json(outcome: Outcome) -> dict[str, object]:
    """Return the JSON document that `--json` prints and the search's directory stores."""
    search = outcome.search
    return {
        "format": FORMAT,
        "scenario": str(search.document.raw["name"]),
        "engine": {"name": outcome.planner.engine.name, "version": outcome.planner.engine.version},
        "seed": outcome.planner.seed,
        "budget": search.budget,
        "parameters": {parameter.address: parameter.span for parameter in search.parameters},
        "quantities": [_described(quantity) for quantity in search.quantities],
        "evaluated": len(outcome.candidates),
        "failed": len(outcome.failed),
        "feasible": sum(candidate.is_feasible(search) for candidate in outcome.candidates),
        "default": _as_json(outcome.default, search),
        "best": [_as_json(candidate, search) for candidate in outcome.shown],
        "importances": list(outcome.importances),
        "verified": [
            {
                "engine": verified.engine,
                "version": verified.version,
                "held_out": verified.is_held_out,
                "points": list(verified.points),
                "untrustworthy": verified.untrustworthy,
                "candidates": [_as_json(candidate, search) for candidate in verified.candidates],
                "differences": [asdict(row) for row in verified.rows],
            }
            for verified in outcome.verified
        ],
        "cautions": outcome.cautions,
    }


def _described(quantity: Objective | Constraint) -> dict[str, object]:
    if isinstance(quantity, Constraint):
        return {"name": quantity.name, "unit": quantity.term.unit, "constraint": quantity.text}
    goal = "maximise" if quantity.is_maximised else "minimise"
    return {"name": quantity.name, "unit": quantity.term.unit, "goal": goal}


def _as_json(candidate: Candidate, search: Search) -> dict[str, object]:
    estimates = candidate.estimates or [None] * len(search.quantities)
    return {
        "candidate": candidate.number,
        "settings": candidate.settings,
        "repetitions": candidate.repetitions,
        "feasible": candidate.is_feasible(search) if candidate.is_measured else None,
        "failed": candidate.failed or None,
        "values": {
            quantity.name: asdict(estimate) if estimate else None
            for quantity, estimate in zip(search.quantities, estimates, strict=True)
        },
    }


def best_table(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Return the default and the best candidates with their intervals, as a table."""
    return _table(outcome.search, [outcome.default, *outcome.shown])


def verified_table(search: Search, verified: Verified) -> tuple[list[str], list[list[str]]]:
    """Return the default and the best candidates over all held-out points, as a table."""
    return _table(search, verified.candidates)


def _table(search: Search, candidates: Sequence[Candidate]) -> tuple[list[str], list[list[str]]]:
    scales = [_scale(quantity, number, candidates) for number, quantity in enumerate(search.quantities)]
    headings = ["candidate", *(parameter.title for parameter in search.parameters)]
    headings += [_with_unit(quantity.name, scale) for quantity, scale in zip(search.quantities, scales, strict=True)]
    rows = []
    for candidate in candidates:
        settings = search.written if candidate.number is None else candidate.settings
        cells = [candidate.name, *(value_text(settings.get(parameter.address)) for parameter in search.parameters)]
        estimates = candidate.estimates or [None] * len(scales)
        for quantity, estimate, scale in zip(search.quantities, estimates, scales, strict=True):
            is_broken = estimate and isinstance(quantity, Constraint) and quantity.excess(estimate.mean) > 0
            cells.append(_estimated(estimate, scale) + (BROKEN if is_broken else ""))
        rows.append([*cells, str(candidate.repetitions)])
    return [*headings, "repetitions"], rows


def difference_table(verified: Verified) -> tuple[list[str], list[list[str]]]:
    """Return the differences between the best candidates and the default, as a table."""
    headings = ["candidate", "of", "at", "default", "candidate's", "change", "p", "verdict"]
    rows = []
    for row in verified.rows:
        halves = [_half(estimate) for estimate in (row.default, row.found)]
        scale = scale_for(row.unit, [row.default.mean, row.found.mean], [half for half in halves if half is not None])
        unit = f" {scale.unit}" if scale.unit else ""
        values = [_estimated(estimate, scale) + unit for estimate in (row.default, row.found)]
        change = _change(row.difference.value, row.difference.low, row.difference.high, scale)
        p = NOTHING if row.p is None else f"{row.p:.2g}"
        rows.append([row.candidate, row.quantity, row.point, *values, change, p, row.verdict])
    return headings, rows


def best_text(search: Search, evaluated: Sequence[Candidate]) -> str:
    """Return a line about the best candidate, or the Pareto front, so far; empty before the first one."""
    best = front(evaluated, search)
    if len(search.objectives) > 1:
        return f"{len(best)} on the Pareto front" if best else ""
    return f"best {best[0].name}: {objective_text(search, best[0])}" if best else ""


def objective_text(search: Search, candidate: Candidate) -> str:
    """Return the objectives of a candidate as text for a progress line."""
    texts = []
    for objective, estimate in zip(search.objectives, candidate.estimates, strict=False):
        if estimate:
            scale = scale_for(objective.term.unit, [estimate.mean])
            texts.append(f"{objective.name} {scale.text(estimate.mean)}{f' {scale.unit}' if scale.unit else ''}")
    return ", ".join(texts)


def _scale(quantity: Objective | Constraint, number: int, candidates: Sequence[Candidate]) -> Scale:
    estimates = [
        estimate for candidate in candidates if candidate.estimates and (estimate := candidate.estimates[number])
    ]
    halves = [half for estimate in estimates if (half := _half(estimate)) is not None]
    return scale_for(quantity.term.unit, [estimate.mean for estimate in estimates], halves)


def _half(estimate: Estimate) -> float | None:
    return None if estimate.low is None or estimate.high is None else (estimate.high - estimate.low) / 2


def _with_unit(name: str, scale: Scale) -> str:
    return f"{name} ({scale.unit})" if scale.unit else name


def _estimated(estimate: Estimate | None, scale: Scale) -> str:
    if estimate is None:
        return NOTHING
    half = scale.half_width(estimate.low, estimate.high)
    return scale.text(estimate.mean) + (f" ± {half}" if half else "")


def _change(value: float, low: float | None, high: float | None, scale: Scale) -> str:
    def signed(number: float) -> str:
        text = f"{number / scale.size:+.{scale.decimals}f}"
        return text if text.strip("+-0.") else f"{0:.{scale.decimals}f}"

    return signed(value) + (f" ({signed(low)} to {signed(high)})" if low is not None and high is not None else "")
