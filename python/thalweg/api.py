"""The Python API: load a scenario, run it, read its tables as polars frames, plot.

    import thalweg

    scenario = thalweg.load_scenario("scenarios/quickstart.toml", {"path.rtt": "80ms"})
    result = scenario.run()
    result.summary(["goodput"])        # a polars frame: a row per point of the sweep and flow, with 95 % intervals
    result.table("samples")            # a table of the run directory as a polars frame
    result.plot("goodput")             # an Altair chart
    result.write_report("quickstart.html")

docs/guide/python.md is the guide. The documented names are stable; CHANGELOG.md announces changes.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from thalweg import engine as engines
from thalweg import plan, results, scenario
from thalweg.errors import Exit, ThalwegError
from thalweg.results import Run
from thalweg.run import Outcome, default_directory, execute
from thalweg.scenario.toml_text import toml_value

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from thalweg.engine_output import EngineEvent

Table = Literal["flows", "samples", "state", "queue", "packets"]
"""Tables of a run directory; docs/reference/columns.md describes their columns."""

__all__ = ["Result", "Scenario", "ThalwegError", "load_scenario", "open_run"]

PATH = "(path)"


class Result:
    """A run directory: its tables, its measures, and charts of them."""

    def __init__(self, run: Run) -> None:
        """Wrap an open run directory; `open_run` and `Scenario.run` return results."""
        self._run = run

    def __repr__(self) -> str:
        return f"Result({self._run.engine}, {str(self.directory)!r})"

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self._run.path

    @property
    def engine(self) -> str:
        """Name of the engine that ran it."""
        return self._run.engine

    @property
    def sweep_keys(self) -> Sequence[str]:
        """Keys of the sweep; each is a column of every frame."""
        return self._run.sweep_keys

    @property
    def cautions(self) -> list[str]:
        """Limits of the evidence: missing or untrustworthy experiments, copied repetitions, starved connections."""
        from thalweg import analysis

        return analysis.cautions(self._run)

    def table(self, name: Table) -> "pl.DataFrame":
        """Return a table of all complete experiments, with a column per swept key.

        Args:
            name: `flows` (a row per transfer), `samples` (per connection and sampling time), `state` (per change of an
                algorithm's state), `queue` (per direction and sampling time) or `packets` (only with `engine.record`).

        Raises:
            ThalwegError: The table is unknown, or a file is damaged or cannot be read.
        """
        if name not in get_args(Table):
            raise ThalwegError(
                "unknown-table", f"there is no table `{name}`", expected=f"one of {', '.join(get_args(Table))}"
            )
        frame: pl.DataFrame = getattr(self._run, name)()
        return frame if set(self.sweep_keys) <= set(frame.columns) else self._run.with_sweep(frame)

    def summary(self, measures: Sequence[str] | None = None) -> "pl.DataFrame":
        """Return the means over repetitions with their 95 % confidence intervals.

        Args:
            measures: Names of measures (docs/reference/analysis.md); None: all.

        Returns:
            A row per point of the sweep, flow and measure. Columns: `experiment`, the swept keys, `flow` (null for the
            path), `cc`, `measure`, `unit`, `n`, `mean`, `low`, `high` (null without an interval), `median`, `copies`
            (whether the repetitions are copies of one another).

        Raises:
            ThalwegError: A measure is unknown, or a file is damaged.
        """
        from thalweg import analysis

        return analysis.summary(self._run, measures=_known(measures))

    def repetitions(self, measures: Sequence[str] | None = None) -> "pl.DataFrame":
        """Return the measures of each repetition: the values behind `summary`.

        Raises:
            ThalwegError: A measure is unknown, or a file is damaged.
        """
        from thalweg import analysis

        return analysis.repetitions(self._run, measures=_known(measures))

    def plot(self, measure: str = "goodput") -> "alt.LayerChart | alt.FacetChart":
        """Return an Altair chart of a measure over the swept key with the most values, one line per flow with its
        intervals.

        Further swept keys become panels. Without a sweep, the flows are on the x axis.

        Raises:
            ThalwegError: The measure is unknown, or has no value in this run, or a file is damaged.
        """
        import altair as alt
        import polars as pl

        summary = self.summary([measure])
        if summary.is_empty():
            raise ThalwegError("no-values", f"the run {self.directory} has no value of `{measure}`")
        keys = [key for key in self.sweep_keys if summary[key].n_unique() > 1]
        x = max(keys, key=lambda key: summary[key].n_unique(), default="flow")
        panels = [key for key in keys if key != x]
        title, unit = _title(measure)
        rows = [
            {
                "x": row[x] if x != "flow" else row["flow"] or PATH,
                "flow": row["flow"] or PATH,
                "mean": row["mean"],
                "low": row["low"],
                "high": row["high"],
                "panel": ", ".join(f"{key} {row[key]}" for key in panels),
            }
            for row in summary.to_dicts()
        ]
        base = alt.Chart(pl.DataFrame(rows, infer_schema_length=None)).encode(
            x=alt.X("x:O", title=x, sort=list(dict.fromkeys(row["x"] for row in rows))), color=alt.Color("flow:N")
        )
        y = alt.Y("mean:Q", title=f"{title} ({unit})" if unit else title)
        layers = alt.layer(base.mark_line(point=True).encode(y=y), base.mark_rule().encode(y="low:Q", y2="high:Q"))
        return layers.facet(facet="panel:N", columns=2) if panels else layers

    def write_report(self, file: str | PathLike[str]) -> Path:
        """Write the report as one HTML file, and return its path."""
        from thalweg import report

        report.write([self.directory], Path(file))
        return Path(file)


@dataclass(frozen=True)
class Scenario:
    """A checked scenario."""

    document: scenario.Document
    file: Path
    settings: Mapping[str, Any]

    def run(
        self,
        engine: str = engines.DEFAULT,
        out: str | PathLike[str] | None = None,
        threads: int | None = None,
    ) -> Result:
        """Run the missing experiments of the scenario, and return the results.

        Args:
            engine: `sim`, `kernel`, `uml` or `vm`.
            out: Run directory; by default `runs/NAME-ENGINE-HASH`, so that the same scenario is not run twice.
            threads: Experiments at a time; by default one per core, or one on an engine in real time.

        Raises:
            ThalwegError: The engine cannot run here or refuses the scenario, the run directory cannot be written, or an
                experiment failed.
            KeyboardInterrupt: It was interrupted; finished experiments stay, and running it again resumes.
        """
        with _explained():
            capabilities = engines.capabilities(engine)
            chosen = engines.choose(engine, capabilities)
            planned = plan.make(self.document, chosen, capabilities.engines)
        directory = Path(out) if out else default_directory(planned, chosen)
        outcome = execute(
            planned, directory, binary=capabilities.binary, threads=threads, command=self._command(engine, out)
        )
        if outcome.exit_code is Exit.INTERRUPTED:
            raise KeyboardInterrupt
        if outcome.failed:
            raise _failed(outcome, directory)
        return open_run(directory)

    def _command(self, engine: str, out: str | PathLike[str] | None) -> list[str]:
        """Return the command for this scenario, engine, settings and run directory, which stores it."""
        texts = {key: value if isinstance(value, str) else toml_value(value) for key, value in self.settings.items()}
        settings = [word for key, text in texts.items() for word in ("--set", f"{key}={text}")]
        directory = ["--out", os.fspath(out)] if out else []
        return ["thalweg", "run", str(self.file), "--engine", engine, *settings, *directory]


def load_scenario(file: str | PathLike[str], settings: Mapping[str, Any] | None = None) -> Scenario:
    """Read and check a scenario.

    Args:
        file: A TOML file.
        settings: Values that replace the file's, by key, such as `{"path.rtt": "80ms"}`; a list, tuple or array is
            swept.

    Raises:
        ThalwegError: The file cannot be read or is not TOML, or a setting is malformed.
        ThalwegErrors: The scenario or the settings have mistakes, which the error lists.
    """
    with _explained():
        if not isinstance(settings or {}, Mapping):
            raise ThalwegError(
                "bad-settings",
                "the settings are not a mapping",
                found=repr(settings),
                expected='values by key, such as {"path.rtt": "80ms"}',
            )
        values = {key: _plain(key, value) for key, value in (settings or {}).items()}
        return Scenario(scenario.load(file, values), Path(file), values)


def open_run(directory: str | PathLike[str]) -> Result:
    """Open a run directory.

    Raises:
        ThalwegError: It is not a run directory that this version can read, or nothing in it is complete.
    """
    return Result(results.open_run(directory))


@contextmanager
def _explained() -> Iterator[None]:
    """Add the line, the expectation and the hint of an error to its traceback."""
    try:
        yield
    except ThalwegError as error:
        error.add_note(error.text())
        raise


def _plain(key: str, value: Any) -> Any:
    """Return a value of TOML: scalars and arrays of NumPy and polars become numbers and lists.

    Raises:
        ThalwegError: If the value has another type.

    >>> _plain("path.loss", (0, 0.01))
    [0, 0.01]
    """
    for convert in ("tolist", "to_list"):
        if hasattr(value, convert):
            return _plain(key, getattr(value, convert)())
    if isinstance(value, list | tuple):
        return [_plain(key, inner) for inner in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(f"{key}.{name}", inner) for name, inner in value.items()}
    if isinstance(value, bool | int | float | str | date | time):
        return value
    raise ThalwegError(
        "bad-value",
        f"`{key}` is a {type(value).__name__}",
        place=key,
        found=repr(value),
        expected="a text, a number, a truth value, or a list of them",
    )


def _known(measures: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names of measures; a single name may be a text.

    Raises:
        ThalwegError: If a name is unknown.
    """
    from thalweg.analysis import MEASURES

    measures = [measures] if isinstance(measures, str) else measures
    unknown = [name for name in measures or [] if name not in MEASURES]
    if unknown:
        raise ThalwegError(
            "unknown-measure",
            f"there is no measure `{unknown[0]}`",
            expected=", ".join(MEASURES),
        )
    return measures


def _title(measure: str) -> tuple[str, str]:
    from thalweg.analysis import MEASURES

    unit = MEASURES[measure].unit
    return MEASURES[measure].title, "" if unit in ("ratio", "count") else unit


def _failed(outcome: Outcome, directory: Path) -> ThalwegError:
    first: EngineEvent = outcome.failed[0]
    return ThalwegError(
        "experiments-failed",
        f"{len(outcome.failed)} of {outcome.experiments} experiments failed",
        found=f"experiment {first['experiment']}, repetition {first['repetition']}: {first['message']}",
        hint=f"complete experiments are in {directory}: thalweg.open_run({str(directory)!r})",
        exit_code=Exit.FAILED,
    )
