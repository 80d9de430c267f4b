"""Parts of records: `thalweg advise` evaluates synthetic records from runs of the simulator, once per repetition.

All repetitions draw from the same runs of the simulator, so intervals do not include the variation between runs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from thalweg.plan import Plan
from thalweg.report.files import put
from thalweg.run import Outcome
from thalweg.scratch import Scratch
from thalweg.studies.claims import advice_measures
from thalweg.studies.claims.planned_part import PlannedPart
from thalweg.studies.judging.data import PartData
from thalweg.studies.running.rounds import ExperimentKey

if TYPE_CHECKING:  # importing these is slow, and most studies do not need them
    from thalweg.advise import Answer, Question
    from thalweg.synth import PathClass, Settings
    from thalweg.synth.pool import Pool

SIMULATED = "simulated"
ANSWERS = "answers.json"

Simulate = Callable[[PlannedPart, Path, Sequence[ExperimentKey]], Outcome]

Teller = Callable[[str], None]

VALUES = {
    "experiment": pl.UInt64,
    "repetition": pl.UInt64,
    "flow": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
}


def simulated(
    planned_part: PlannedPart, directory: Path, simulate: Simulate, outcomes: list[Outcome]
) -> "dict[str, Pool]":
    """Run the simulations from which records are drawn, below `directory`; append their outcomes.

    Raises:
        KeyboardInterrupt: If a run was interrupted.
        ThalwegError: If the simulator cannot run, or an experiment failed.
    """
    from thalweg import synth

    def run(kind: "PathClass", plan: Plan, folder: Path, _: Path) -> Outcome:
        due = [(experiment.experiment, experiment.repetition) for experiment in plan.experiments]
        outcomes.append(simulate(PlannedPart(kind.name, planned_part.engine, plan), folder, due))
        return outcomes[-1]

    return synth.simulate(directory / SIMULATED, quick=planned_part.is_quick, runner=run)


def judged(
    parts: Mapping[str, PlannedPart], pools: "Mapping[str, Pool]", directory: Path, report: Teller
) -> dict[str, PartData]:
    """Generate the records of parts for every seed, judge them, and write the answers below `directory`."""
    settings_by_part = {part: _settings(planned_part) for part, planned_part in parts.items()}
    answers: dict[str, list[Answer]] = {part: [] for part in parts}
    different = list(
        dict.fromkeys(settings for part_settings in settings_by_part.values() for settings in part_settings)
    )
    for number, settings in enumerate(different, 1):
        report(f"records {number} of {len(different)} are synthesised and judged")
        asking = [part for part, part_settings in settings_by_part.items() if settings in part_settings]
        for part, answer in zip(asking, _answers(settings, [parts[part] for part in asking], pools), strict=True):
            answers[part].append(answer)
    for part, part_answers in answers.items():
        content = [
            {"repetition": repetition, "parts": advice_measures.as_json(answer_)}
            for repetition, answer_ in enumerate(part_answers)
        ]
        hint = "choose another path with --out DIR"
        put(directory / part / ANSWERS, json.dumps(content, indent=1) + "\n", "the answers", hint)
    return {part: _data(parts[part], part_answers) for part, part_answers in answers.items()}


def _settings(planned_part: PlannedPart) -> "list[Settings]":
    from thalweg import synth

    records = planned_part.records
    assert records
    seeds = range(1, records.repetitions + 1)
    return [synth.Settings(records.rows, seed, records.days, design=records.design) for seed in seeds]


def _answers(settings: "Settings", parts: Sequence[PlannedPart], pools: "Mapping[str, Pool]") -> "list[Answer]":
    """Generate records and judge them; the records are deleted, because the seed reproduces them."""
    from thalweg import advise, synth

    with Scratch("thalweg-study-") as folder:
        synth.write(synth.make(settings, pools), folder)
        paths, table = [folder / synth.RECORDS], folder / synth.PREFIXES
        questions = [_question(planned_part, settings) for planned_part in parts]
        return [advise.advise(paths, question, table=table) for question in questions]


def _question(planned_part: PlannedPart, settings: "Settings") -> "Question":
    from thalweg.advise import Design, Question

    activation = settings.activation
    at_us = None if activation is None else round(activation.timestamp() * 1e6)
    assert planned_part.records
    return Question(design=Design(planned_part.records.design, at_us), segments=tuple(planned_part.records.by))


def _data(planned_part: PlannedPart, answers: "Sequence[Answer]") -> PartData:
    assert planned_part.records
    rows = [(repetition, part, name, value) for repetition, answer in enumerate(answers)
            for part, name, value in advice_measures.values(answer)]  # fmt: skip
    titles = {part.names: part.values for _, part, _, _ in rows}
    order = sorted(titles, key=lambda names: titles[names])
    numbers = {names: number for number, names in enumerate(order)}
    keys = {"experiment": pl.UInt64, **dict.fromkeys(planned_part.records.by, pl.String)}
    points = pl.DataFrame([(numbers[names], *names) for names in order], schema=keys, orient="row")
    values = [(numbers[part.names], repetition, None, name, value) for repetition, part, name, value in rows]
    return PartData.of_records(planned_part, points, pl.DataFrame(values, schema=VALUES, orient="row"))
