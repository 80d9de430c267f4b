"""The page of a fuzzer's findings, compared with the scenario without their conditions."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from thalweg import analysis
from thalweg.analysis import QUANTITIES
from thalweg.errors import ThalwegError
from thalweg.report.drawing.figure import Figure, quantity_axis
from thalweg.report.files import put
from thalweg.report.pages.search import PageTable, SearchPage, html
from thalweg.report.text.labels import NOTHING
from thalweg.results import open_run
from thalweg.scenario.text.quantities import time_text
from thalweg.search.conditions import Conditions
from thalweg.search.failures import described
from thalweg.search.findings import Finding, scenario_text, sentence
from thalweg.search.fuzzing import Fuzzing
from thalweg.search.measuring import raise_failed
from thalweg.search.planning import digest
from thalweg.search.terms import intervals_ns

DRAWN = ("rate", "cwnd", "queue")

SAMPLES = 400
"""Minimum number of samples of a curve."""

FAILING, UNHARMED = "as found", "without these conditions"

METHOD = (
    "A candidate fails if every repetition fails. Unnecessary conditions are removed, and the others are made as mild"
    " and as round as possible while the candidate still fails. The curves are those of the first repetition, with the"
    " same seed on both sides. docs/reference/searches.md defines the rules."
)


def write(fuzzing: Fuzzing, findings: Sequence[Finding], names: Sequence[str], file: Path, command: str) -> None:
    """Run the experiments of the figures, and write the page.

    Raises:
        Interrupted: If the user requested a stop.
        ThalwegError: If the engine cannot run, or the page cannot be written.
    """
    page = as_page(fuzzing, findings, names, command)
    put(file, html(page), "the page of the findings", "free some space, then run the same command again")


def as_page(fuzzing: Fuzzing, findings: Sequence[Finding], names: Sequence[str], command: str) -> SearchPage:
    """Return the content of the page."""
    document = fuzzing.fuzz.document
    return SearchPage(
        name=str(document.raw["name"]),
        about=str(document.raw.get("about", "")),
        headline=_headline(findings),
        facts=_facts(fuzzing),
        tables=[_table(fuzzing, findings, names)],
        figures=[
            figure
            for finding, name in zip(findings, names, strict=True)
            for figure in _figures(fuzzing, finding, name)
        ],
        command=command,
        cautions=list(_cautions(fuzzing)),
        method=METHOD,
        kind="fuzz",
        scenarios=[
            (name, scenario_text(document, finding, name)) for finding, name in zip(findings, names, strict=True)
        ],
    )  # fmt: skip


def _headline(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Nothing was found. This covers only the candidates that were tried, not all conditions."
    failures = len({finding.failure.name for finding in findings})
    subject = f"{len(findings)} kinds of conditions" if len(findings) > 1 else "One kind of conditions"
    return f"{subject} under which {'one failure occurs' if failures == 1 else f'{failures} failures occur'}."


def _facts(fuzzing: Fuzzing) -> list[tuple[str, str]]:
    fuzz = fuzzing.fuzz
    facts = [(f"failure {name}", text) for name, text in described(fuzz.failures).items()]
    facts.append(("conditions", ", ".join(fuzz.ranges)))
    return [*facts, ("candidates", f"{fuzz.budget} for each failure"), ("engine", fuzzing.engine.name)]


def _table(fuzzing: Fuzzing, findings: Sequence[Finding], names: Sequence[str]) -> PageTable:
    rows = []
    for finding, name in zip(findings, names, strict=True):
        confirmed = finding.confirmed.text if finding.confirmed else NOTHING
        rows.append([finding.failure.name, sentence(fuzzing.fuzz.document, finding).replace("`", ""), confirmed, name])
    missing = [
        failure
        for failure in fuzzing.fuzz.failures
        if all(finding.failure.name != failure.name for finding in findings)
    ]
    rows += [[failure.name, "nothing", NOTHING, NOTHING] for failure in missing]
    note = "The scenarios are listed below, and are in the folder found."
    return PageTable("Findings", ["failure", "found", "on another engine", "scenario"], rows, note)


def _cautions(fuzzing: Fuzzing) -> Iterator[str]:
    for name, candidates in fuzzing.without_value.items():
        if candidates:
            first = candidates[0]
            ratio = f"{len(candidates)} of {fuzzing.fuzz.budget} candidates"
            yield f"{name}: {ratio} could not be run; {first.name}: {first.failed}."


def _figures(fuzzing: Fuzzing, finding: Finding, name: str) -> Iterator[Figure]:
    sides = {FAILING: _curves(fuzzing, finding.conditions)}
    if finding.conditions:
        sides[UNHARMED] = _curves(fuzzing, ())
    caption = sentence(fuzzing.fuzz.document, finding).replace("`", "")
    for quantity in DRAWN:
        rows = [row for side, curves in sides.items() for row in _rows(side, curves.get(quantity, []))]
        if rows:
            described_ = QUANTITIES[quantity]
            title = f"{name}: {described_.title[0].lower()}{described_.title[1:]}"
            frame = pl.DataFrame(rows, orient="row")
            yield Figure(f"{name}-{quantity}", title, "series", frame, y=quantity_axis(described_), about=caption)


def _rows(side: str, curves: Sequence[analysis.Line]) -> Iterator[dict[str, object]]:
    for number, line in enumerate(curves):
        for t_s, value in zip(line.t_s, line.value, strict=True):
            yield {"t_s": t_s, "value": value, "flow": line.name, "line": number, "panel": side}


def _curves(fuzzing: Fuzzing, conditions: Conditions) -> Mapping[str, Sequence[analysis.Line]]:
    """Run the scenario under conditions, and return its curves; empty if it cannot be planned."""
    try:
        planned = fuzzing.plan(conditions, settings={"sample_interval": _interval(fuzzing), "repetitions": 1})
    except ThalwegError:
        return {}
    directory = fuzzing.folder / "drawn" / digest(planned.model_dump_json())
    raise_failed(fuzzing.lab.run(planned, directory))
    [series] = analysis.series(open_run(directory), [(0, 0)], quantities=DRAWN)
    return series.lines


def _interval(fuzzing: Fuzzing) -> str:
    """Return a sampling interval that is short enough for `SAMPLES` samples."""
    [scenario_ns] = intervals_ns(fuzzing.fuzz.document)
    needed_ns = int(fuzzing.fuzz.duration_s * 1e9 / SAMPLES)
    return time_text(min(scenario_ns, needed_ns) if scenario_ns else needed_ns)
