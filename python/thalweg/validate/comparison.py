"""The result of a comparison of two engines."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.validate import reasons
from thalweg.validate.compare import GridCell, compare
from thalweg.validate.errors import Overall, overall
from thalweg.validate.goals import Disagreement, JudgedGoal, disagreements, judge
from thalweg.validate.grid import Grid
from thalweg.validate.part import GridPart
from thalweg.validate.reasons import KnownReason


@dataclass(frozen=True)
class EngineComparison:
    """Two engines, compared."""

    engines: tuple[str, str]
    """The judged engine and the reference."""
    grid: Grid
    parts: Sequence[GridPart]
    cells: Sequence[GridCell]
    overall: Sequence[Overall]
    goals: Sequence[JudgedGoal]
    disagreements: Sequence[Disagreement]
    reasons: Sequence[KnownReason]
    stale: Sequence[KnownReason]
    """Known reasons that no longer explain a disagreement."""

    @classmethod
    def of(
        cls, grid: Grid, parts: Sequence[GridPart], known_reasons: Sequence[KnownReason] | None = None
    ) -> "EngineComparison":
        """Compare the runs; the known reasons are those of thalweg's file unless they are passed."""
        engines = (parts[0].sides[0].engine.name, parts[0].sides[1].engine.name)
        known_reasons = reasons.load(engines) if known_reasons is None else known_reasons
        cells = [cell for part in parts for cell in compare(part)]
        errors = [
            (name, compared.error)
            for cell in cells
            for name, compared in cell.measures.items()
            if compared.error is not None
        ]
        listed = disagreements(cells)
        stale = reasons.stale(known_reasons, listed, cells, is_whole=not grid.left_out)
        return cls(engines, grid, parts, cells, overall(errors), judge(cells), listed, known_reasons, stale)

    def reason(self, disagreement: Disagreement) -> str | None:
        """Return the known reason of a disagreement; None if it is unexplained."""
        return reasons.explain(disagreement, self.reasons)
