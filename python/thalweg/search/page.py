"""Converts a search to its page."""

from math import log
from pathlib import Path

import polars as pl

from thalweg.report.drawing.figure import AxisUnit, Figure, Scaled
from thalweg.report.files import put
from thalweg.report.pages.search import PageTable, SearchPage, html
from thalweg.report.text.labels import key_title, value_text
from thalweg.report.text.numbers import amount, per_cent
from thalweg.search import outcome as texts
from thalweg.search.candidates import Candidate
from thalweg.search.outcome import Outcome
from thalweg.search.parameters import Parameter, number_of
from thalweg.search.terms import Constraint, Objective
from thalweg.search.verifying import ALL_POINTS

BEST, OTHER, INFEASIBLE, DEFAULT = "best", "other candidates", "breaks a constraint", "default"

METHOD = (
    "Every repetition has one value of an objective, reduced over its points as specified. Intervals are 95 %"
    " confidence intervals of the mean over repetitions (Student t); candidates have the same seeds. Differences at"
    " held-out points have Welch's test with Holm's correction. docs/reference/searches.md defines the rules."
)

NUMBER_UNITS: dict[str, AxisUnit] = {"bit/s": "bit/s", "s": "s", "ratio": "ratio"}

ORDER = pl.Enum([OTHER, INFEASIBLE, BEST, DEFAULT])
"""Drawing order: the last ones are on top."""

BELOW, ABOVE = -0.07, 1.07
"""Positions of the labels at the ends of an axis, on which values are between 0 and 1."""


def write(outcome: Outcome, file: Path, command: str) -> None:
    """Write the page; `command` reproduces it.

    Raises:
        ThalwegError: If the file cannot be written.
    """
    put(file, html(as_page(outcome, command)), "the search's page", "free some space, then run the same command again")


def as_page(outcome: Outcome, command: str) -> SearchPage:
    """Return the content of the page of a search."""
    search = outcome.search
    return SearchPage(
        name=str(search.document.raw["name"]),
        about=str(search.document.raw.get("about", "")),
        headline=_headline(outcome),
        facts=_facts(outcome),
        tables=_tables(outcome),
        figures=_figures(outcome) if any(candidate.is_measured for candidate in outcome.candidates) else [],
        command=command,
        cautions=[f"{text[:1].upper()}{text[1:]}." for text in outcome.cautions],
        method=METHOD,
    )


def _headline(outcome: Outcome) -> str:
    if not outcome.shown:
        return "No candidate has values and meets all constraints."
    if len(outcome.search.objectives) > 1:
        return f"{len(outcome.front)} of {len(outcome.candidates)} candidates are on the Pareto front."
    best = outcome.shown[0]
    settings = ", ".join(
        f"{parameter.title} {value_text(best.settings[parameter.address])}" for parameter in outcome.search.parameters
    )
    verdicts = []
    for verified in outcome.verified:
        points = "held-out points" if verified.is_held_out else "the same points, with other seeds"
        verdicts += [
            f"On {verified.engine}, compared with the default at {points}: {row.quantity} {row.verdict}"
            for row in verified.rows
            if row.candidate == best.name and row.point == ALL_POINTS
        ]
    return f"The best of {len(outcome.candidates)} candidates: {settings}" + (
        f". {'; '.join(verdicts).capitalize()}." if verdicts else "."
    )


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    search = outcome.search
    facts = [(parameter.title, parameter.span) for parameter in search.parameters]
    facts += [("maximise" if objective.is_maximised else "minimise", objective.name) for objective in search.objectives]
    facts += [("subject to", constraint.text) for constraint in search.constraints]
    facts += [
        ("held out", f"{key_title(key)}: {', '.join(map(value_text, values))}")
        for key, values in search.held_out.items()
    ]
    stopped = sum(bool(candidate.stopped) for candidate in outcome.candidates)
    facts.append(
        ("candidates", f"{len(outcome.candidates)}, of which {stopped} stopped early and {len(outcome.failed)} failed")
    )
    return [*facts, ("engine", f"{outcome.planner.engine.name}, seed {outcome.planner.seed}")]


def _tables(outcome: Outcome) -> list[PageTable]:
    is_one = len(outcome.search.objectives) == 1
    headings, rows = texts.best_table(outcome)
    tables = [
        PageTable("Best candidates" if is_one else "Pareto front", headings, rows, "At the points of the search.")
    ]
    for verified in outcome.verified:
        points = "Held-out points" if verified.is_held_out else "Other seeds"
        headings, rows = texts.verified_table(outcome.search, verified)
        tables.append(
            PageTable(f"{points} on {verified.engine}", headings, rows, f"Points: {'; '.join(verified.points)}.")
        )
        headings, rows = texts.difference_table(verified)
        if rows:
            note = "Difference of the candidate from the default, with its interval; p after Holm's correction."
            tables.append(
                PageTable(f"Compared with the default on {verified.engine}", headings, rows, note, verdicts=True)
            )
    return tables


def _figures(outcome: Outcome) -> list[Figure]:
    figures = [_trace(outcome, number) for number in range(len(outcome.search.objectives))]
    if len(outcome.search.quantities) > 1:
        figures.insert(0, _scatter(outcome, 0, 1))
    if any(outcome.importances):
        figures.append(_importance(outcome))
    return [*figures, _parallel(outcome)]


def _kind(candidate: Candidate, outcome: Outcome) -> str:
    if candidate.number is None:
        return DEFAULT
    if not candidate.is_feasible(outcome.search):
        return INFEASIBLE
    return BEST if candidate.number in {shown.number for shown in outcome.shown} else OTHER


def _measured(outcome: Outcome) -> list[Candidate]:
    return [candidate for candidate in (*outcome.candidates, outcome.default) if candidate.is_measured]


def _axis(quantity: Objective | Constraint) -> Scaled:
    return Scaled(quantity.name, NUMBER_UNITS.get(quantity.term.unit, ""))


def _scatter(outcome: Outcome, x_index: int, y_index: int) -> Figure:
    search = outcome.search
    first, second = search.quantities[x_index], search.quantities[y_index]
    rows = []
    for candidate in _measured(outcome):
        x, y = candidate.estimates[x_index], candidate.estimates[y_index]
        if x and y:
            rows.append((x.mean, y.mean, y.low, y.high, _kind(candidate, outcome)))
    is_front = y_index < len(search.objectives)
    schema = pl.Schema(dict.fromkeys(("x", "y", "low", "high"), pl.Float64()) | {"series": ORDER})
    frame = pl.DataFrame(rows, schema, orient="row").sort("series", maintain_order=True)
    caption = "Every candidate, with the interval of the vertical value. "
    caption += (
        f"No candidate is {'above' if search.objectives[1].is_maximised else 'below'} and to the"
        f" {'right' if search.objectives[0].is_maximised else 'left'} of one on the front."
        if is_front
        else f"Candidates must meet {search.constraints[0].text}."
    )
    title = "Pareto front" if is_front else f"{first.name} and {second.name}"
    return Figure("front", title, "points", frame, x=_axis(first), y=_axis(second), about=caption)


def _trace(outcome: Outcome, number: int) -> Figure:
    objective = outcome.search.objectives[number]
    best: Candidate | None = None
    rows = []
    for candidate in outcome.candidates:
        if candidate.is_feasible(outcome.search) and not candidate.stopped:
            value = candidate.objectives(outcome.search)[number]
            if best is None or objective.is_better(value, best.objectives(outcome.search)[number]):
                best = candidate
        if best is not None and (estimate := best.estimates[number]):
            rows.append((candidate.number, estimate.mean, estimate.low, estimate.high, "best until then"))
    schema = {"x": pl.Int64, "y": pl.Float64, "low": pl.Float64, "high": pl.Float64, "series": pl.String}
    frame = pl.DataFrame(rows, schema, orient="row")
    title, caption = f"Best until each candidate: {objective.name}", "Of candidates that meet all constraints."
    return Figure(f"trace-{number}", title, "lines", frame, x=Scaled("candidate"), y=_axis(objective), about=caption)


def _importance(outcome: Outcome) -> Figure:
    titles = {parameter.address: parameter.title for parameter in outcome.search.parameters}
    rows = [
        (titles[address], share, None, None, objective.name)
        for objective, shares in zip(outcome.search.objectives, outcome.importances, strict=True)
        for address, share in sorted(shares.items(), key=lambda item: -item[1])
    ]
    schema = {"x": pl.String, "y": pl.Float64, "low": pl.Float64, "high": pl.Float64, "series": pl.String}
    frame = pl.DataFrame(rows, schema, orient="row")
    caption = (
        "fANOVA over all candidates with values: the share of the objective's variance within the searched ranges."
    )
    y = Scaled("share of the variance explained", "ratio")
    return Figure(
        "importance", "Importance of the parameters", "bars", frame, x=Scaled("parameter"), y=y, about=caption
    )


def _parallel(outcome: Outcome) -> Figure:
    """Return the figure in which each candidate with values is a line over the parameters and the quantities."""
    search = outcome.search
    measured = [candidate for candidate in _measured(outcome) if candidate.number is not None]
    kinds = {candidate.name: _kind(candidate, outcome) for candidate in measured}
    rows: list[tuple[str, float, str | None, str, str | None, str]] = []
    for parameter in search.parameters:
        title, ends = parameter.title, [value_text(end) for end in parameter.ends]
        rows += [(title, BELOW, None, "", ends[0], OTHER), (title, ABOVE, None, "", ends[-1], OTHER)]
        for candidate in measured:
            text = value_text(candidate.settings[parameter.address])
            rows.append((title, _height(parameter, candidate), candidate.name, text, None, kinds[candidate.name]))
    for number, quantity in enumerate(search.quantities):
        means = {candidate.name: estimate.mean for candidate in measured if (estimate := candidate.estimates[number])}
        low, high = min(means.values()), max(means.values())
        rows.append((quantity.name, BELOW, None, "", _shown(low, quantity), OTHER))
        rows.append((quantity.name, ABOVE, None, "", _shown(high, quantity), OTHER))
        for name, mean in means.items():
            height = (mean - low) / (high - low) if high > low else 0.5
            rows.append((quantity.name, height, name, _shown(mean, quantity), None, kinds[name]))
    axes = [*(each.title for each in search.parameters), *(parameter.name for parameter in search.quantities)]
    texts_of = dict.fromkeys(("line", "text", "end"), pl.String())
    schema = pl.Schema({"x": pl.Enum(axes), "y": pl.Float64(), **texts_of, "series": ORDER})
    frame = pl.DataFrame(rows, schema, orient="row").sort("x", "series", maintain_order=True)
    caption = "Each line is a candidate: its parameters, then its results."
    return Figure("parallel", "All candidates, axis by axis", "parallel", frame, about=caption)


def _height(parameter: Parameter, candidate: Candidate) -> float:
    """Return the position of a candidate on the axis of a parameter, from 0 to 1."""
    value = candidate.settings[parameter.address]
    if parameter.kind == "choice":
        return list(parameter.choices).index(value) / (len(parameter.choices) - 1)
    number = number_of(value) or 0.0
    low, high = parameter.low, parameter.high
    if parameter.is_log:
        return log(number / low) / log(high / low)
    return (number - low) / (high - low)


def _shown(value: float, quantity: Objective | Constraint) -> str:
    unit = quantity.term.unit
    return amount(value, unit) if unit in ("bit/s", "s") else per_cent(value) if unit == "ratio" else f"{value:.4g}"
