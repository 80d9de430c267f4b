"""A part of a study on one engine, with the overrides of claims.toml."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import cast

import polars as pl

from thalweg import analysis, plan, scenario
from thalweg import engine as engines
from thalweg.engine import Engine
from thalweg.errors import Source, ThalwegErrors
from thalweg.plan import Plan
from thalweg.results.plan_document import PlanDocument
from thalweg.scenario import Document
from thalweg.scenario.document import Replacements, TomlValue, Value
from thalweg.studies.claims.load import CLAIMS, Study
from thalweg.studies.claims.models import RecordsPart, Setup, StudyPart
from thalweg.studies.claims.shapes import quick as quick_records


@dataclass(frozen=True)
class PlannedPart:
    """A part of a study, planned for an engine."""

    part: str
    engine: Engine
    plan: Plan | None = None
    """The plan; None if the engine can run no point, or the part has records."""
    why_not: str = ""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """Excluded points of the sweep, with the reasons."""
    left_out: Mapping[int, Mapping[str, Value]] = field(default_factory=dict)
    """Sweep values of the excluded points."""
    document: Document | None = None
    """The scenario with all overrides."""
    fixed: Mapping[str, TomlValue] = field(default_factory=dict)
    """Keys that the scenario sweeps, but that have a single value here."""
    scaled: str = ""
    whole: "Callable[[], PlannedPart] | None" = None
    """Plans the full set, if this is the quick one."""
    records: RecordsPart | None = None
    """Synthetic records to judge instead of a plan."""
    is_quick: bool = False
    """For records: whether fewer connections are simulated."""

    @cached_property
    def points(self) -> pl.DataFrame:
        """One row per planned point: experiment, the keys of the sweep, the derived keys."""
        assert self.plan
        points = {experiment.experiment: experiment.sweep for experiment in self.plan.experiments}
        rows = [{"experiment": number, **sweep, **self.fixed} for number, sweep in points.items()]
        derived = analysis.derived_from(cast(PlanDocument, self.plan.model_dump(mode="json")))
        frame = pl.DataFrame(rows, infer_schema_length=None, strict=False).cast({"experiment": pl.UInt64})
        return frame.join(derived, on="experiment", how="left", maintain_order="left")

    def directory(self, folder: Path) -> Path:
        """Return the run directory of the part."""
        assert self.plan
        return plan.folder_of(folder, self.part, self.engine, self.plan)


def prepare(study: Study, part: str, engine: Engine, available: Mapping[str, Engine], *, quick: bool) -> PlannedPart:
    """Plan a part for an engine.

    Raises:
        ThalwegErrors: If the overrides of claims.toml are invalid, or the default engine, without a set-up, does not
            support the scenario.
    """
    table = study.claims.parts[part]
    setup = table.engines.get(engine.name)
    if not engine.available:
        return PlannedPart(part, engine, why_not=engine.reason)
    if table.records is not None:
        if engine.name != engines.DEFAULT:
            return PlannedPart(
                part, engine, why_not=f"records are synthesised from runs of the engine {engines.DEFAULT} only"
            )
        return PlannedPart(part, engine, records=quick_records(table) if quick else table.records, is_quick=quick)
    if setup is None and engine.name != engines.DEFAULT:
        return PlannedPart(part, engine, why_not=f"the study has no set-up of `{part}` for the engine {engine.name}")
    if setup is not None and setup.why_not is not None:
        return PlannedPart(part, engine, why_not=setup.why_not)
    settings = _settings(table, setup, quick=quick)
    document = _with_settings(study, part, settings)
    swept = document.swept
    fixed = {key: settings[key] for key in study.documents[part].swept if key not in swept}
    shortened = _shortened(study, part, setup) if quick else ""
    scaled = "; ".join(filter(None, (setup.scaled if setup else None, shortened)))
    try:
        possible = plan.possible(document, engine, available, any_cc=True)
    except ThalwegErrors as error:
        if engine.name == engines.DEFAULT and setup is None:
            raise
        return PlannedPart(part, engine, why_not=error.errors[0].message, document=document)
    return PlannedPart(
        part,
        engine,
        possible.plan,
        "" if possible.plan else next(iter(possible.reasons.values())),
        possible.reasons,
        {point.experiment: point.sweep for point in possible.points if point.experiment in possible.reasons},
        document,
        fixed,
        scaled,
        cache(partial(prepare, study, part, engine, available, quick=False)) if quick else None,
    )


def _settings(part: StudyPart, setup: Setup | None, *, quick: bool) -> dict[str, TomlValue]:
    """Return the overrides of the scenario; those of an engine's set-up take precedence over the part's."""
    engine_setup = setup or Setup()
    return {**(part.quick if quick else {}), **engine_setup.set, **(engine_setup.quick if quick else {})}


def _shortened(study: Study, part: str, setup: Setup | None) -> str:
    """Describe the overrides of --quick, except sweep keys and repetitions, which reports show."""
    table, reported = study.claims.parts[part], {*study.documents[part].swept, "repetitions"}
    full, now = (_settings(table, setup, quick=is_quick) for is_quick in (False, True))
    changed = [f"{key} = {value}" for key, value in now.items() if value != full.get(key) and key not in reported]
    return f"in the quick set {', '.join(changed)}" if changed else ""


def _with_settings(study: Study, part: str, settings: Replacements) -> Document:
    """Return the checked scenario with the settings; mistakes refer to claims.toml."""
    name = study.claims.parts[part].scenario
    assert name is not None, "parts without one are not planned"
    file = study.folder / name
    try:
        return scenario.load(file, settings)
    except ThalwegErrors as errors:
        for error in errors.errors:
            if error.source is None or error.source.file == "--set":
                error.source = Source(str(study.folder / CLAIMS))
                error.message = f"in parts.{part}: {error.message}"
        raise
