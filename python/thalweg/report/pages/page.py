"""The page of a report: the values of its template."""

import json
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from thalweg import analysis
from thalweg.report.content import Content, LabelledRun
from thalweg.report.drawing.colours import colours
from thalweg.report.drawing.draw import draw, packed
from thalweg.report.drawing.embed import Distributions, data, figures
from thalweg.report.drawing.figure import Figure
from thalweg.report.drawing.sweeps import flow_figures, heat_maps
from thalweg.report.offline import render
from thalweg.report.page_json import PageJson
from thalweg.report.text.cautions import cautions
from thalweg.report.text.findings import findings
from thalweg.report.text.sentences import sentences
from thalweg.report.text.shares import share_lines
from thalweg.report.text.table import table
from thalweg.report.text.timelines import present
from thalweg.report.text.upkeep import lines
from thalweg.report.text.words import flow_sentences, path_sentences, traffic_sentences
from thalweg.results import Run


def page(content: Content) -> str:
    """Return the page as HTML."""
    runs, sweep, measurements = content.runs, content.sweep, content.measurements
    sweep_figures, maps = flow_figures(sweep, measurements), heat_maps(sweep, measurements)
    drawings = [draw(figure) for figure in [*sweep_figures, *maps]]
    embedded = data(content)
    return render(
        "page.html.j2",
        ["common.js", "page.js", *(["figures.js"] if drawings else [])],
        {**embedded, "figures": [packed(drawing) for drawing in drawings], "choices": _choices(maps)},
        flows=sweep.flows,
        all_flows=sweep.all_flows,
        title=" and ".join(dict.fromkeys(run.run.name for run in runs)),
        scenarios=_scenarios(runs, sweep.flows),
        runs=[_provenance(run) for run in runs],
        runs_title=content.sweep.runs_title,
        cautions=cautions(runs, sweep, measurements),
        sentences=sentences(sweep, measurements),
        findings=findings(sweep, measurements),
        extremes="Where the runs differ most" if sweep.has_same_points_in_runs else "Best and worst point of the sweep",
        table=table(sweep, measurements),
        figures=figures(sweep, measurements),
        together=sweep_figures,
        maps=list(zip(maps, drawings[len(sweep_figures) :], strict=True)),
        upkeep=lines(runs),
        shares=share_lines(runs),
        quantities=present(embedded["series"]["entries"]),
        has_series=any(entry["curves"] for entry in embedded["series"]["entries"]),
        distributions=_distribution_names(embedded["distributions"]),
        cdf_titles=embedded["distributions"]["titles"],
        has_intervals=any(cell.low is not None for cell in measurements.cells.values()),
        hues=colours(sweep.ccs.values()),
        method=analysis.METHOD.replace("95 %", "95\N{NO-BREAK SPACE}%"),
    )


def _choices(maps: list[Figure]) -> list[PageJson]:
    values = list(dict.fromkeys(text for figure in maps for text in figure.rows["choice"].to_list()))
    return [{"title": "at", "column": "choice", "values": values, "has_all": False}] if len(values) > 1 else []


def _scenarios(runs: Sequence[LabelledRun], flows: Sequence[str]) -> list[PageJson]:
    """Describe each distinct scenario once; scenarios that differ only in the engine are the same."""
    described: dict[str, PageJson] = {}
    labels: dict[str, list[str]] = {}
    for labelled in runs:
        run = labelled.run
        plan, sweep = run.plan, _sweep(run)
        entry: PageJson = {
            "name": run.name,
            "about": run.plan["about"],
            "source": run.plan["source"],
            "path": path_sentences(plan, run.command),
            "flows": [flow_sentence for flow_sentence in flow_sentences(plan) if flow_sentence[0] in flows],
            "traffic": traffic_sentences(plan),
            "sweep": sweep,
            "toml": run.plan["scenario_toml"],
        }
        key = json.dumps(entry, sort_keys=True)
        labels.setdefault(key, []).append(labelled.label)
        described[key] = entry | {"runs": labels[key]}
    return list(described.values())


def _sweep(run: Run) -> str:
    experiments = run.plan["experiments"]
    points = len({entry["experiment"] for entry in experiments})
    repetitions = len({entry["repetition"] for entry in experiments})
    times = "once" if repetitions == 1 else f"{repetitions} times"
    total = f"{len(experiments)} experiment{'s' if len(experiments) != 1 else ''}"
    if points == 1:
        return f"It was run {times}, each time with another seed." if repetitions > 1 else "It was run once."
    return f"Each of the {points} points of the sweep was run {times}: {total}."


def _provenance(labelled: LabelledRun) -> dict[str, str]:
    run = labelled.run
    host = run.meta.get("host") or {}
    cores = host.get("cores")
    machine = [host.get("os"), host.get("kernel"), host.get("cpu"), f"{cores} cores" if cores else None]
    command = (
        shlex.join(run.command)
        if run.command
        else f"thalweg run {shlex.quote(run.name)}.toml --engine {shlex.quote(run.engine)}"
    )
    return {
        "label": labelled.label,
        "engine": run.engine,
        "engine_version": str(run.meta.get("engine_version", "")),
        "result_version": str(run.meta.get("result_version", "")),
        "machine": ", ".join(str(part) for part in machine if part),
        "created": _day(str(run.meta.get("created", ""))),
        "command": command,
        "has_command": "yes" if run.command else "",
        # Measurements of an engine about itself show how well it kept up with real time, and differ between runs.
        "is_real_time": "yes" if run.measured else "",
        "directory": str(run.path),
        "run_json": shlex.quote(str(run.path / "run.json")),
    }


def _day(created: str) -> str:
    try:
        return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return created


def _distribution_names(distributions: Distributions) -> list[str]:
    present = set(distributions["measure"])
    return [name for name in ("completion_time", "transfer_goodput", "rtt") if name in present]
