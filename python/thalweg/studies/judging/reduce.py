"""Reduces several points to one number."""

from collections.abc import Callable

import numpy as np

from thalweg.analysis.tables.thin import Numbers
from thalweg.studies.claims.models import Over, Take


def along(reduction: Take, key: Numbers, values: Numbers, level: float | None = None) -> Numbers:
    """Reduce the last axis of `values`, at the ascending positions `key`; NaN if undefined.

    >>> along("growth", np.array([1.0, 2.0]), np.array([4.0, 6.0])).item()
    1.5
    >>> along("crossing", np.array([1.0, 4.0]), np.array([0.0, 1.0]), level=0.5).item()
    2.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        match reduction:
            case "growth":
                reduced = values[..., -1] / values[..., 0]
            case "spread":
                reduced = values.max(axis=-1) / values.min(axis=-1)
            case "slope":
                reduced = _slope(np.log2(key), values)
            case "spearman":
                reduced = _spearman(key, values)
            case "crossing":
                assert level is not None
                reduced = _crossing(key, values, level)
    return np.where(np.isfinite(reduced), reduced, np.nan)


def over(name: Over, values: Numbers) -> Numbers:
    """Reduce the last axis of `values`."""
    functions: dict[Over, Callable[..., Numbers]] = {"median": np.median, "mean": np.mean, "min": np.min, "max": np.max}
    return np.asarray(functions[name](values, axis=-1))


def _slope(key: Numbers, values: Numbers) -> Numbers:
    deviations = key - key.mean()
    return np.asarray((values * deviations).sum(axis=-1) / (deviations**2).sum())


def _spearman(key: Numbers, values: Numbers) -> Numbers:
    ranks, key_ranks = _ranks(values), _ranks(key)
    ranks, key_ranks = ranks - ranks.mean(axis=-1, keepdims=True), key_ranks - key_ranks.mean()
    return np.asarray((ranks * key_ranks).sum(axis=-1) / np.sqrt((ranks**2).sum(axis=-1) * (key_ranks**2).sum()))


def _ranks(values: Numbers) -> Numbers:
    """Return the ranks along the last axis, from 1; equal values share the mean of their ranks.

    >>> _ranks(np.array([[3.0, 1.0, 3.0, 2.0]])).tolist()
    [[3.5, 1.0, 3.5, 2.0]]
    """
    others, one = values[..., np.newaxis, :], values[..., :, np.newaxis]
    return np.asarray(((others < one).sum(axis=-1) + (others <= one).sum(axis=-1) + 1) / 2)


def _crossing(key: Numbers, values: Numbers, level: float) -> Numbers:
    """Return the first crossing of the level, interpolated over the logarithm of the key, or over the key if it is not
    positive.
    """
    above = values >= level
    crosses = above[..., 1:] != above[..., :-1]
    first = np.expand_dims(crosses.argmax(axis=-1), -1)
    before = np.take_along_axis(values, first, axis=-1)[..., 0]
    right = np.take_along_axis(values, first + 1, axis=-1)[..., 0]
    start, end = key[first[..., 0]], key[first[..., 0] + 1]
    share = (level - before) / (right - before)
    is_log = (start > 0) & (end > 0)
    safe_start, safe_end = np.where(is_log, start, 1), np.where(is_log, end, 1)
    crossing = np.where(is_log, safe_start * (safe_end / safe_start) ** share, start + share * (end - start))
    return np.where(crosses.any(axis=-1), crossing, np.nan)
