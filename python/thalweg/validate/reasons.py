"""Known reasons for disagreements of engines, from python/thalweg/data/disagreements.toml."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypedDict

from thalweg.errors import ThalwegError
from thalweg.scenario.sweep import Assignment
from thalweg.validate.compare import GridCell
from thalweg.validate.goals import Disagreement

FILE = Path(__file__).parents[1] / "data" / "disagreements.toml"


class ReasonEntry(TypedDict):
    """An entry of the file."""

    engines: list[str]
    part: str
    reason: str
    point: NotRequired[Assignment]
    flow: NotRequired[str]
    measures: NotRequired[list[str]]


@dataclass(frozen=True)
class KnownReason:
    """Reason why two engines disagree at some points of a part."""

    engines: tuple[str, ...]
    part: str
    reason: str
    point: Assignment = field(default_factory=dict)
    """Sweep values of the points; unlisted keys may have any value."""
    flow: str | None = None
    measures: tuple[str, ...] = ()
    """Names of the measures; empty: all."""

    def covers(self, cell: GridCell, measure: str | None = None) -> bool:
        """Return whether the reason applies to a cell, and to a measure of the cell."""
        return (
            cell.scenario == self.part
            and (self.flow is None or self.flow == cell.flow)
            and all(cell.point.get(key) == value for key, value in self.point.items())
            and (measure is None or not self.measures or measure in self.measures)
        )

    @property
    def pattern(self) -> str:
        """Scope of the reason, in one line."""
        words = [self.part, *(f"{key}={value}" for key, value in self.point.items())]
        words += [self.flow] if self.flow else []
        return " ".join([*words, *self.measures])


def load(engines: tuple[str, str], file: Path = FILE) -> list[KnownReason]:
    """Read the known reasons for two engines.

    Raises:
        ThalwegError: If an entry has an unknown key or lacks a required one.
    """
    entries = tomllib.loads(file.read_text()).get("disagreement", [])
    keys = ReasonEntry.__required_keys__ | ReasonEntry.__optional_keys__
    for number, entry in enumerate(entries, 1):
        unknown, lacking = set(entry) - keys, ReasonEntry.__required_keys__ - set(entry)
        if unknown or lacking:
            raise ThalwegError(
                "bad-reason",
                f"entry {number} of `{file}` {'has' if unknown else 'lacks'} `{min(unknown or lacking)}`",
                place=str(file),
                expected=f"the keys {', '.join(sorted(keys))}",
            )
    return [reason for reason in map(_reason, entries) if reason.engines == engines]


def _reason(entry: ReasonEntry) -> KnownReason:
    return KnownReason(
        engines=tuple(entry["engines"]),
        part=entry["part"],
        reason=" ".join(entry["reason"].split()),
        point=entry.get("point", {}),
        flow=entry.get("flow"),
        measures=tuple(entry.get("measures", ())),
    )


def explain(disagreement: Disagreement, reasons: Sequence[KnownReason]) -> str | None:
    """Return the first reason that covers a disagreement."""
    cell, measure = disagreement.cell, disagreement.measure
    return next((reason.reason for reason in reasons if reason.covers(cell, measure)), None)


def stale(
    reasons: Sequence[KnownReason], disagreements: Sequence[Disagreement], cells: Sequence[GridCell], *, is_whole: bool
) -> list[KnownReason]:
    """Return the entries that no longer explain a disagreement.

    An entry is stale only if a cell that it covers was compared or, with `is_whole` (no point was omitted), if its part
    has cells, but none that it covers.
    """
    parts = {cell.scenario for cell in cells}
    compared = [cell for cell in cells if cell.state == "compared"]
    stale_reasons = []
    for reason in reasons:
        explains = any(reason.covers(disagreement.cell, disagreement.measure) for disagreement in disagreements)
        is_tried = any(reason.covers(cell) for cell in compared)
        is_lost = is_whole and reason.part in parts and not any(reason.covers(cell) for cell in cells)
        if not explains and (is_tried or is_lost):
            stale_reasons.append(reason)
    return stale_reasons
