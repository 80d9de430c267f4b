"""Reads one run directory.

    run = open_run("runs/quickstart-sim-1a2b3c4d")
    run.flows().group_by("path.buffer", "flow").agg(pl.col("goodput_bps").mean())

An experiment is complete when its file in flows/ exists; other files of an incomplete one are not read.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NoReturn, cast

import polars as pl
from pydantic import JsonValue

from thalweg.engine_output import EngineEvent
from thalweg.errors import Exit, ThalwegError
from thalweg.results import journal, tables
from thalweg.results.columns import TABLES
from thalweg.results.parquet import damaged
from thalweg.results.plan_document import PlanDocument, SweptValue
from thalweg.results.reading import Unreadable, first_line, reading
from thalweg.results.run_file import RunFile

NOT_NEEDED = "not-needed.json"
"""File in a run directory that lists the experiments that a study did not need."""

FORMAT = 1
"""Format version of run directories that this version supports."""


@dataclass(frozen=True)
class Untrustworthy:
    """A complete experiment whose results are unreliable, and the reason."""

    id: str
    experiment: int
    repetition: int
    reason: str


@dataclass(frozen=True)
class Measured:
    """Measurements of an engine about itself during an experiment."""

    experiment: int
    repetition: int
    numbers: dict[str, float]
    """Numbers by name, such as `relay_lateness_p99_us`."""


class Run:
    """A run directory, opened with `open_run`."""

    def __init__(self, path: Path, meta: RunFile) -> None:
        self.path = path
        self.meta = meta
        self.plan: PlanDocument = meta["plan"]

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.plan["name"]

    @property
    def engine(self) -> str:
        """Name of the engine that ran it."""
        return str(self.meta["engine"])

    @property
    def command(self) -> list[str]:
        """The command that created the directory, as typed; empty if the engine was called directly."""
        return list(self.meta.get("command") or [])

    @cached_property
    def expected_ids(self) -> Sequence[str]:
        """Ids of all experiments, in the order of the plan."""
        return [entry["id"] for entry in self.meta["experiments"]]

    @cached_property
    def finished_ids(self) -> Sequence[str]:
        """Ids of the complete experiments, in the order of the plan."""
        return [id for id in self.expected_ids if (self.path / "flows" / f"{id}.parquet").exists()]

    @property
    def trustworthy_ids(self) -> list[str]:
        """Ids of the complete experiments that are not marked untrustworthy, in the order of the plan."""
        marked = {mark.id for mark in self.untrustworthy}
        return [id for id in self.finished_ids if id not in marked]

    @property
    def is_finished(self) -> bool:
        """Whether every experiment of the plan is complete."""
        return len(self.finished_ids) == len(self.expected_ids)

    @cached_property
    def sweep_keys(self) -> Sequence[str]:
        """Keys that the sweep sets, from the slowest to the fastest changing one."""
        points = self._points
        first_change = {
            key: next((i for i, point in enumerate(points) if point[key] != points[0][key]), len(points))
            for key in (points[0] if points else {})
        }
        return sorted(first_change, key=lambda key: -first_change[key])

    @cached_property
    def _points(self) -> list[Mapping[str, SweptValue]]:
        sweeps: dict[int, Mapping[str, SweptValue]] = {
            entry["experiment"]: entry["sweep"] for entry in self.plan["experiments"]
        }
        return [sweeps[number] for number in sorted(sweeps)]

    def points(self) -> pl.DataFrame:
        """Return the points of the sweep: `experiment` and a column per sweep key, in the order of the scenario."""
        numbers = sorted({entry["experiment"] for entry in self.plan["experiments"]})
        columns = {"experiment": pl.Series(numbers, dtype=pl.UInt64)}
        for key in self.sweep_keys:
            values = [point[key] for point in self._points]
            is_number = not any(isinstance(value, bool | str) for value in values)
            columns[key] = pl.Series([float(value) for value in values] if is_number else values)
        return pl.DataFrame(columns)

    def with_sweep(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Join the sweep's columns by `experiment`, after the frame's own columns; the order of rows is unchanged."""
        missing = [key for key in self.sweep_keys if key not in frame.columns]
        if not missing:
            return frame
        return frame.join(
            self.points().select("experiment", *missing), on="experiment", how="left", maintain_order="left"
        )

    def scan(self, table: str, ids: Sequence[str] | None = None) -> pl.LazyFrame:
        """Scan a table lazily; with `ids`, only the files of these experiments.

        Raises:
            ThalwegError: If a file is damaged or cannot be read.
        """
        try:
            return tables.scan(self.path, table, self.finished_ids if ids is None else ids)
        except PermissionError as error:
            raise _cannot_read(error, self.path) from None
        except tables.DamagedTable as error:
            raise self._damaged(error.file, error.why) from None

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Execute a query on tables from `scan`.

        Raises:
            ThalwegError: If the rows of a file are damaged.
        """
        try:
            with reading():
                return query.collect()
        except (Unreadable, OSError) as error:
            files = sorted(file for name in TABLES for file in (self.path / name).glob("*.parquet"))
            bad, why = next(damaged(files), (self.path, first_line(error)))
            raise self._damaged(bad, why) from None

    def _damaged(self, file: Path, why: str) -> ThalwegError:
        again = shlex.join(self.command) if self.command else "the command that made the run"
        return ThalwegError(
            "damaged-run",
            f"`{file}` is not a table of {file.parent.name}: {why}",
            place=str(file),
            expected="an undamaged Parquet file of the engine",
            hint=f"to run that experiment again: rm -r {shlex.quote(str(self.path / 'flows' / file.name))} && {again}",
        )

    def flows(self) -> pl.DataFrame:
        """Return one row per transfer, with the sweep's columns."""
        return self.with_sweep(self.collect(self.scan("flows")))

    def samples(self) -> pl.DataFrame:
        """Return the sampled state of connections."""
        return self.collect(self.scan("samples"))

    def state(self) -> pl.DataFrame:
        """Return the state of congestion controls, one row per value at the first sample and at each change."""
        return self.collect(self.scan("state"))

    def queue(self) -> pl.DataFrame:
        """Return the sampled state of both directions of the path."""
        return self.collect(self.scan("queue"))

    def packets(self) -> pl.DataFrame:
        """Return the packets that were offered to the path; empty unless the scenario set `engine.record`."""
        return self.collect(self.scan("packets"))

    @cached_property
    def events(self) -> list[EngineEvent]:
        """The events of the journal in order."""
        return journal.read(self.path)

    @cached_property
    def failed(self) -> Mapping[str, EngineEvent]:
        """The last failure of each experiment that is not complete, by id, in the order of the plan."""
        last = {event["id"]: event for event in self.events if event["event"] == "failed" and "id" in event}
        finished = set(self.finished_ids)
        return {id: last[id] for id in self.expected_ids if id in last and id not in finished}

    @cached_property
    def untrustworthy(self) -> Sequence[Untrustworthy]:
        """Complete experiments with unreliable results, each reason once, in the order of the plan.

        The table of flows determines the mark: an experiment that was successfully run again is not marked.
        """
        ids = {(entry["experiment"], entry["repetition"]): entry["id"] for entry in self.meta["experiments"]}
        marked = self.scan("flows").select("experiment", "repetition", "untrustworthy").drop_nulls()
        rows = self.collect(marked.unique().sort("experiment", "repetition", "untrustworthy")).iter_rows()
        return [Untrustworthy(ids[row[:2]], *row) for row in rows if row[:2] in ids]

    @cached_property
    def not_needed(self) -> frozenset[tuple[int, int]]:
        """Experiments and repetitions that a study did not need; they do not count as missing."""
        try:
            noted = json.loads((self.path / NOT_NEEDED).read_text(encoding="utf-8"))
            return frozenset((int(experiment), int(repetition)) for experiment, repetition in noted["experiments"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return frozenset()

    @cached_property
    def measured(self) -> Sequence[Measured]:
        """The engine's measurements about itself in complete experiments, from the last attempt at each."""
        entries = {entry["id"]: entry for entry in self.meta["experiments"]}
        last = {
            event["id"]: event.get("measured")
            for event in self.events
            if event["event"] == "finished" and isinstance(id := event.get("id"), str) and id in entries
        }
        return [
            Measured(entries[id]["experiment"], entries[id]["repetition"], numbers)
            for id in self.finished_ids
            if isinstance(numbers_ := last.get(id), dict) and (numbers := _numbers(numbers_))
        ]


def open_run(path: str | PathLike[str]) -> Run:
    """Open a run directory, finished or not, with at least one complete experiment.

    Raises:
        ThalwegError: If the directory is not a readable run, has a newer format, or has no complete experiment.
    """
    directory = Path(path)
    run = Run(directory, _meta(directory))
    try:
        has_some = bool(run.finished_ids)
    except PermissionError as error:
        raise _cannot_read(error, directory) from None
    if not has_some:
        raise _empty(run)
    return run


def _empty(run: Run) -> ThalwegError:
    count = len(run.expected_ids)
    if count and len(run.failed) == count:
        id, event = next(iter(run.failed.items()))
        first = next(entry for entry in run.meta["experiments"] if entry["id"] == id)
        reason = str(event.get("message", "")).strip().replace("\n", "\n    ")
        message = f"no experiment in `{run.path}` is complete: {'all ' if count > 1 else ''}{count} failed"
        found = f"experiment {first['experiment']}, repetition {first['repetition']}: {reason}"
        hint = "leave it out, or remove the cause of the failures before you run it again"
    else:
        message, found = f"no experiment in `{run.path}` is complete yet: 0 of {count}", None
        hint = "leave it out, or resume it with the same `thalweg run` command"
        hint += f": {shlex.join(run.command)}" if run.command else ""
    return ThalwegError("empty-run", message, place=str(run.path), found=found, hint=hint, exit_code=Exit.NO_EVIDENCE)


def _meta(directory: Path) -> RunFile:
    shown = str(directory)
    file = directory / "run.json"
    if any("\ud800" <= character <= "\udfff" for character in shown):
        why = f"`{directory}` cannot be read: its name is not UTF-8, which tables require"
        raise ThalwegError("cannot-read", why, place=shown, hint="rename it with mv to a UTF-8 name")
    if not directory.is_dir():
        problem = "is a file" if directory.exists() else "does not exist"
        raise ThalwegError(
            "no-run",
            f"`{directory}` is not a run directory: it {problem}",
            place=shown,
            hint="`thalweg run FILE` prints the directory that it writes; by default it is under runs/",
        )
    try:
        meta = json.loads(file.read_text(encoding="utf-8"), object_hook=lambda format_: _Object(format_, file))
    except FileNotFoundError:
        inside = sorted(child.parent.name for child in directory.glob("*/run.json"))
        hint = f"did you mean `{directory / inside[0]}`?" if inside else "choose a directory that `thalweg run` wrote"
        raise ThalwegError(
            "no-run", f"`{directory}` is not a run directory: it has no run.json", place=shown, hint=hint
        ) from None
    except OSError as error:
        raise _cannot_read(error, file) from None
    except (ValueError, RecursionError):
        raise ThalwegError(
            "damaged-run",
            f"`{file}` is not JSON",
            place=shown,
            hint="restore the file, or run the scenario again into another directory",
        ) from None
    format_ = meta.get("format") if isinstance(meta, dict) else None
    if type(format_) is int and format_ > FORMAT:
        raise ThalwegError(
            "newer-run",
            f"`{directory}` has format {format_}, which a newer thalweg wrote",
            place=shown,
            found=f"format {format_}",
            expected=f"format {FORMAT}",
            hint="pip install --upgrade thalweg",
        )
    wrong = f"format {format_!r}" if type(format_) is not int or format_ != FORMAT else _missing(meta)
    if wrong:
        raise _no_description(file, wrong)
    return cast(RunFile, dict(meta))


def _no_description(file: Path, problem: str) -> ThalwegError:
    return ThalwegError(
        "damaged-run",
        f"`{file}` does not describe a run",
        place=str(file.parent),
        found=problem,
        expected=f"format {FORMAT}, as `thalweg run` writes it",
        hint="restore the file, or run the scenario again into another directory",
    )


class _Object(dict[str, JsonValue]):
    """An object of run.json. Access to a missing key raises the error that the file is damaged."""

    def __init__(self, content: dict[str, JsonValue], file: Path) -> None:
        super().__init__(content)
        self._file = file

    def __missing__(self, key: str) -> NoReturn:
        raise _no_description(self._file, f"an object without `{key}`")


def _cannot_read(error: OSError, around: Path) -> ThalwegError:
    file = str(error.filename or around)
    why = (error.strerror or str(error)).lower()
    return ThalwegError(
        "cannot-read",
        f"`{file}` cannot be read: {why}",
        place=file,
        hint=f"ls -ld {shlex.quote(str(Path(file).parent))}",
    )


def _numbers(measured: dict[str, JsonValue]) -> dict[str, float]:
    """Return the finite numbers; a journal may have been edited."""
    return {
        name: float(value)
        for name, value in measured.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    }


def _missing(meta: dict[str, JsonValue]) -> str | None:
    """Describe the first missing part of run.json; None if it is complete."""
    plan = meta.get("plan")
    planned = plan.get("experiments") if isinstance(plan, dict) else None
    if not isinstance(plan, dict) or "name" not in plan or "engine" not in meta:
        return "no engine, or no plan with a name"
    for experiments, keys in (
        (planned, {"experiment", "repetition", "sweep"}),
        (meta.get("experiments"), {"id", "experiment", "repetition"}),
    ):
        if not isinstance(experiments, list) or not experiments:
            return "no experiments"
        if not all(isinstance(experiment, dict) and keys <= experiment.keys() for experiment in experiments):
            return f"an experiment without {', '.join(sorted(keys))}"
    return None
