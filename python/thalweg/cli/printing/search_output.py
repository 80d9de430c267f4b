"""Output of a search's results, and of a planned search, on a terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.cli import typed
from thalweg.cli.printing import evidence, output
from thalweg.search import outcome as found

if TYPE_CHECKING:
    from thalweg.search.outcome import Outcome
    from thalweg.search.table import Search


def show(outcome: "Outcome", directory: Path, page: Path | None) -> None:
    """Print the paths of all results, the best candidates, and their verification."""
    output.data(f"search  {directory}")
    if page:
        output.data(f"page    {page}")
    output.data(f"again   {typed.again()}")
    title = "Pareto front" if len(outcome.search.objectives) > 1 else "best candidates"
    stopped = sum(bool(candidate.stopped) for candidate in outcome.candidates)
    output.data(
        f"\n{title} of {len(outcome.candidates)} candidates ({stopped} stopped early), mean and 95 % interval:\n"
    )
    headings, rows = found.best_table(outcome)
    output.data(output.table(headings, rows, numbers=range(1, len(headings))))
    for verification in outcome.verified:
        points_text = "held-out points" if verification.is_held_out else "the points of the search, with other seeds"
        output.data(f"\nat {points_text}, on {verification.engine}:\n")
        headings, rows = found.verified_table(outcome.search, verification)
        output.data(output.table(headings, rows, numbers=range(1, len(headings))))
        headings, rows = found.difference_table(verification)
        if rows:
            output.data("\ncompared with the default (p after Holm's correction):\n")
            output.data(output.table(headings, rows, numbers=(3, 4, 5, 6)))
    for caution in outcome.cautions:
        output.talk(evidence.sentence(caution))


def describe(search: "Search", points: int, held_out: int, repetitions: int) -> str:
    """Describe a planned search."""
    parameters = ", ".join(f"{parameter.address} from {parameter.span}" for parameter in search.parameters)
    goals = ", ".join(
        f"{'maximise' if objective.is_maximised else 'minimise'} {objective.name}" for objective in search.objectives
    )
    lines = [f"[search] {search.budget} candidates: {parameters}", f"  {goals}"]
    lines += [f"  subject to {constraint.text}" for constraint in search.constraints]
    max_experiments = search.budget * points * repetitions
    held_out_text = f"{held_out or 'none'} held out"
    lines.append(
        f"  {_count(points, 'point')} for the search, {held_out_text}, at most {_count(repetitions, 'repetition')} each"
    )
    lines.append(f"  {max_experiments} experiments at most, and those at the held-out points")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
