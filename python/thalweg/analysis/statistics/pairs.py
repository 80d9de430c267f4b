"""Pairs of sweep points: the same point of two runs, or two points of one run that differ in one key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from thalweg.errors import Exit, ThalwegError
from thalweg.results import Run
from thalweg.results.plan_document import SweptValue

PointValues = Mapping[str, SweptValue]


@dataclass(frozen=True)
class Pair:
    """Two points that are compared."""

    point: PointValues
    """Sweep values that both points share."""
    first: int
    """Index of the experiment on the first side."""
    second: int
    values: tuple[SweptValue, SweptValue] | None = None
    """Values of the compared key on both sides; None when two runs are compared."""


@dataclass(frozen=True)
class Pairing:
    """All pairs, and the points without a partner."""

    pairs: Sequence[Pair]
    alone: Sequence[str] = ()
    """Points of two runs that could not be paired, as text; empty for pairs within one run."""


def of_runs(first: Run, second: Run) -> Pairing:
    """Pair the points of two runs by the keys of their sweeps.

    Raises:
        ThalwegError: If no points match, or only one of the runs varies some key.
    """
    keys = [key for key in first.sweep_keys if key in second.sweep_keys]
    sides = [_points(run, keys) for run in (first, second)]
    pairs, unmatched = [], []
    for name, run, side in zip(("A", "B"), (first, second), sides, strict=True):
        own_keys = [key for key in run.sweep_keys if key not in keys]
        if any(len(numbers) > 1 for numbers in side.values()):
            raise ThalwegError(
                "cannot-pair",
                f"the run {name} has several points for each point of the other run, because only {name} sweeps"
                f" {_names(own_keys)}",
                place=str(run.path),
                expected="two runs that sweep the same keys",
                hint=f"run the scenario without {_names(own_keys)} in its [sweep], or compare within {name}: "
                f"thalweg compare {run.path} --by {own_keys[0]}",
            )
    for values, (number, *_) in sides[0].items():
        point = dict(zip(keys, values, strict=True))
        if partner := sides[1].get(values):
            pairs.append(Pair(point, number, partner[0]))
        else:
            unmatched.append(f"only A has {_words(point)}")
    unmatched += [
        f"only B has {_words(dict(zip(keys, values, strict=True)))}" for values in sides[1] if values not in sides[0]
    ]
    if not pairs:
        raise ThalwegError(
            "cannot-pair",
            f"no point of `{first.path}` is in `{second.path}`: {unmatched[0]}; {unmatched[-1]}",
            expected="two runs that share values of their sweeps",
            hint="`thalweg results` shows the points of a run",
            exit_code=Exit.NO_EVIDENCE,
        )
    return Pairing(pairs, unmatched)


def within(run: Run, key: str) -> Pairing:
    """Pair the points of a run that differ in one key of the sweep: its first value with each of the others.

    Raises:
        ThalwegError: If the sweep does not contain the key with at least two values.
    """
    points = run.points()
    values = points[key].unique(maintain_order=True).to_list() if key in run.sweep_keys else []
    if len(values) < 2:
        swept = [sweep_key for sweep_key in run.sweep_keys if points[sweep_key].n_unique() > 1]
        near = get_close_matches(key, swept, n=1)
        raise ThalwegError(
            "cannot-pair",
            f"the sweep of `{run.path}` does not vary `{key}`",
            place="--by",
            found=f"`{key}`",
            expected=f"one of {_names(swept)}" if swept else "a run with a sweep",
            hint=f"did you mean `{near[0]}`?" if near else None,
        )
    rest = [sweep_key for sweep_key in run.sweep_keys if sweep_key != key]
    by_value = {value: _points(run, rest, {key: value}) for value in values}
    pairs = [
        Pair(dict(zip(rest, at, strict=True)), number, by_value[value][at][0], (values[0], value))
        for value in values[1:]
        for at, (number, *_) in by_value[values[0]].items()
        if at in by_value[value]
    ]
    return Pairing(pairs)


def _points(run: Run, keys: Sequence[str], fixed: PointValues | None = None) -> dict[tuple[SweptValue, ...], list[int]]:
    numbers: dict[tuple[SweptValue, ...], list[int]] = {}
    for row in run.points().to_dicts():
        if all(row[key] == value for key, value in (fixed or {}).items()):
            numbers.setdefault(tuple(row[key] for key in keys), []).append(row["experiment"])
    return numbers


def _names(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _words(point: PointValues) -> str:
    return ", ".join(f"{key} = {value}" for key, value in point.items()) or "points"
