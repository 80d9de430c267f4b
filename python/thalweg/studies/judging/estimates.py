"""Quantities with their uncertainty, point by point: a single value, or a comparison of two sides.

Repetitions are independent, and so are the two sides, unless they are from the same experiments. The formulas and their
sources are in docs/reference/studies.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import special

from thalweg.analysis import MEASURES
from thalweg.analysis.tables.thin import Numbers
from thalweg.studies.claims.models import ComparisonKind
from thalweg.studies.judging.bounds import Flags
from thalweg.studies.judging.data import AT, NotRun, Picked

DRAWS = 4000
"""Number of draws for the propagation of distributions; 100 of them lie beyond each end of a 95 % interval."""

SEED = 20180913
"""Seed of the draws, an arbitrary constant, so that the same run produces the same interval."""

MAX_EXPONENT = 60.0
"""Maximum exponent of draws on a logarithmic scale, beyond any measured number."""


class SeveralPartners(Exception):
    """Several references match a point; the message lists the keys that are open."""


@dataclass(frozen=True)
class Side:
    """Means of a quantity, one entry per point."""

    experiment: npt.NDArray[np.int64]
    n: npt.NDArray[np.int64]
    mean: Numbers
    """Mean; NaN: no repetition has a value."""
    variance: Numbers
    """Variance of the mean: s^2 / n; 0 for one repetition."""
    part: str

    @property
    def df(self) -> Numbers:
        """Degrees of freedom."""
        return np.maximum(self.n - 1, 0).astype(np.float64)

    def only(self, keep: Flags) -> "Side":
        """Return a selection of the points."""
        return Side(self.experiment[keep], self.n[keep], self.mean[keep], self.variance[keep], self.part)


@dataclass(frozen=True)
class Sides:
    """The two sides of a quantity at every point."""

    points: pl.DataFrame
    value: Side
    against: Side | None
    is_joint: Flags
    """Whether both sides of a point are from the same experiments."""
    covariance: Numbers
    """Covariance of the means of both sides."""

    @classmethod
    def of_one(cls, points: pl.DataFrame, value: Side) -> "Sides":
        """Create the sides of a quantity without a reference."""
        return cls(points, value, None, np.zeros(len(value.mean), dtype=np.bool_), np.zeros(len(value.mean)))


@dataclass(frozen=True)
class Centre:
    """Estimates on the scale of their uncertainty, before `finish` converts them to the quantity."""

    values: Numbers
    """Values on the scale on which the uncertainty is symmetric; NaN: no value."""
    slopes: tuple[Numbers, Numbers]
    """Derivatives with respect to the mean of the quantity, and to the mean of the reference, negated."""
    is_log: Flags
    """Whether the centre of a point is a logarithm."""


@dataclass(frozen=True)
class Quantities:
    """A quantity with its uncertainty at every point; `Sides` and `Centre` describe the fields with the same names."""

    points: pl.DataFrame
    value: Side
    against: Side | None
    centre: Numbers
    """Values on the scale on which the uncertainty is symmetric; NaN: no value."""
    variance: Numbers
    """Variance on the same scale."""
    df: Numbers
    """Degrees of freedom of the variance."""
    slopes: tuple[Numbers, Numbers]
    is_log: Flags
    is_joint: Flags
    finish: Callable[[Numbers], Numbers]
    """Converts the centre, after exponentiation where it is a logarithm, to the quantity."""

    @classmethod
    def of(cls, sides: Sides, centre: Centre, finish: Callable[[Numbers], Numbers]) -> "Quantities":
        """Propagate the uncertainty of the sides (delta method; degrees of freedom by Welch and Satterthwaite)."""
        value, against, slopes = sides.value, sides.against, centre.slopes
        with np.errstate(invalid="ignore"):
            variance, df = value.variance * slopes[0] ** 2, value.df
        if against is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                first, second = variance, against.variance * slopes[1] ** 2
                variance = np.maximum(first + second - 2 * sides.covariance * slopes[0] * slopes[1], 0)
                df = (first + second) ** 2 / (first**2 / value.df + second**2 / against.df)
            min_df = np.minimum(value.df, against.df)
            # Pairs have n - 1 degrees of freedom; two constants have no weights; one repetition has no variance.
            df = np.where(sides.is_joint | ~np.isfinite(df) | (min_df < 1), min_df, df)
        return cls(
            points=sides.points,
            value=value,
            against=against,
            centre=centre.values,
            variance=variance,
            df=df,
            slopes=slopes,
            is_log=centre.is_log,
            is_joint=sides.is_joint,
            finish=finish,
        )

    @property
    def n(self) -> npt.NDArray[np.int64]:
        """Number of repetitions behind each point, of the side with fewer repetitions."""
        return self.value.n if self.against is None else np.minimum(self.value.n, self.against.n)

    @property
    def estimate(self) -> Numbers:
        """Values of the quantity."""
        return self._finished(self.centre)

    def intervals(self, confidence: float) -> tuple[Numbers, Numbers]:
        """Return the ends of the intervals; NaN without an interval."""
        with np.errstate(invalid="ignore"):
            half = special.stdtrit(self.df, 0.5 + confidence / 2) * np.sqrt(self.variance)
        ends = self._finished(self.centre - half), self._finished(self.centre + half)
        return np.minimum(*ends), np.maximum(*ends)

    def on_log_scale(self) -> "Quantities":
        """Return the same values with logarithmic centres, for use in ratios; unchanged if they are comparisons, or not
        all positive.
        """
        if self.against is not None or not np.all(self.centre > 0):
            return self
        sides = Sides.of_one(self.points, self.value)
        centre = Centre(np.log(self.centre), (1 / self.centre, self.slopes[1]), np.ones_like(self.is_log))
        return Quantities.of(sides, centre, self.finish)

    def draws(self) -> Numbers | None:
        """Draw values within the uncertainty of the repetitions: one row per draw, one column per point.

        None if a point has a single repetition, because its uncertainty is unknown. Points with the same reference
        experiments share the reference's draws.
        """
        if np.any(self.df < 1):
            return None
        rng = np.random.default_rng(SEED)
        joint = self.centre + np.sqrt(self.variance) * rng.standard_t(self.df, (DRAWS, len(self.centre)))
        if self.against is None or self.is_joint.all():
            return self._finished(joint)
        moved = _draw(self.value, rng) * self.slopes[0] - _draw(self.against, rng) * self.slopes[1]
        return self._finished(np.where(self.is_joint, joint, self.centre + moved))

    def only(self, keep: Flags) -> "Quantities":
        """Return a selection of the points."""
        return Quantities(
            self.points.filter(pl.Series(keep)),
            self.value.only(keep),
            self.against and self.against.only(keep),
            self.centre[keep],
            self.variance[keep],
            self.df[keep],
            (self.slopes[0][keep], self.slopes[1][keep]),
            self.is_log[keep],
            self.is_joint[keep],
            self.finish,
        )

    def _finished(self, centre: Numbers) -> Numbers:
        powers = np.exp(np.clip(centre, -MAX_EXPONENT, MAX_EXPONENT))
        return self.finish(np.where(self.is_log, powers, centre))


def of_value(picked: Picked) -> Quantities:
    """Return a quantity without a comparison."""
    side = _side(picked, picked.points["experiment"])
    no_logs, zeros, ones = np.zeros(len(side.mean), dtype=np.bool_), np.zeros(len(side.mean)), np.ones(len(side.mean))
    centre = Centre(side.mean, (ones, zeros), no_logs)
    return Quantities.of(Sides.of_one(picked.points, side), centre, lambda mean: mean)


def of_pair(picked: Picked, other: Picked, kind: ComparisonKind, measure: str, *, is_same: bool) -> Quantities:
    """Compare a quantity with a reference, point by point.

    `is_same`: both are the same measure of the same flow and window, so a point is not compared with itself.

    Raises:
        NotRun: If no points match.
        SeveralPartners: If several references match one point.
    """
    points, partner = _partners(picked, other, is_same=is_same)
    value, against = _side(picked, points["experiment"]), _side(other, partner)
    is_joint = (value.experiment == against.experiment) & (picked.part == other.part)
    if is_joint.any():
        value, against, covariance = _paired(picked, other, value, against, is_joint)
    else:
        covariance = np.zeros(len(is_joint))
    centre = _difference(value, against) if kind == "difference" else _ratio(value, against)
    return Quantities.of(Sides(points, value, against, is_joint, covariance), centre, _finish(kind, measure))


def _difference(value: Side, against: Side) -> Centre:
    ones = np.ones(len(value.mean))
    return Centre(value.mean - against.mean, (ones, ones), np.zeros(len(ones), dtype=np.bool_))


def _ratio(value: Side, against: Side) -> Centre:
    """Return the logarithm of the ratio and its derivatives; the ratio itself where a mean is not positive, and NaN
    where the reference is 0.
    """
    is_log = (value.mean > 0) & (against.mean > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(against.mean == 0, np.nan, value.mean / against.mean)
        centre = np.where(is_log, np.log(np.where(is_log, ratio, 1)), ratio)
        slopes = np.where(is_log, 1 / value.mean, 1 / against.mean), np.where(is_log, 1, ratio) / against.mean
    return Centre(centre, slopes, is_log)


def _finish(kind: ComparisonKind, measure: str) -> Callable[[Numbers], Numbers]:
    if kind == "gain":
        return lambda ratio: ratio - 1
    if kind == "harm":
        return _lost if MEASURES[measure].better == "less" else lambda ratio: 1 - ratio
    return lambda numbers: numbers


def _lost(ratio: Numbers) -> Numbers:
    with np.errstate(divide="ignore"):
        return 1 - 1 / ratio


def _partners(picked: Picked, other: Picked, *, is_same: bool) -> tuple[pl.DataFrame, pl.Series]:
    keys = [key for key in picked.open_keys if key in other.open_keys and not _are_set_apart(picked, other, key)]
    partner = pl.col("experiment").alias("_partner")
    if keys:
        others = other.points.select(partner, *keys)
        points = picked.points.join(others, on=keys, how="inner", maintain_order="left_right")
    else:
        points = picked.points.join(other.points.select(partner), how="cross")
    if is_same and picked.part == other.part:
        points = points.filter(pl.col("experiment") != pl.col("_partner"))
    if not points.height:
        raise NotRun("no point matches a point of the reference")
    if points["experiment"].n_unique() < points.height:
        open_keys = [key for key in other.open_keys if key not in keys]
        raise SeveralPartners(
            f"each point matches several points of the reference: `against` does not specify {', '.join(open_keys)}"
        )
    return points.drop("_partner"), points["_partner"]


def _are_set_apart(picked: Picked, other: Picked, key: str) -> bool:
    """Return whether each side has a single value of a key, and these differ."""
    own_values, other_values = picked.points[key].unique(), other.points[key].unique()
    return len(own_values) == len(other_values) == 1 and own_values[0] != other_values[0]


def _side(picked: Picked, experiments: pl.Series) -> Side:
    stats_ = picked.values.group_by("experiment").agg(
        pl.len().alias("n"), pl.col("value").mean().alias("mean"), pl.col("value").var().alias("s2")
    )
    rows = experiments.to_frame("experiment").join(stats_, on="experiment", how="left", maintain_order="left")
    n = rows["n"].fill_null(0).cast(pl.Int64).to_numpy()
    mean = rows["mean"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    s2 = rows["s2"].cast(pl.Float64).fill_null(0.0).to_numpy()
    return Side(experiments.cast(pl.Int64).to_numpy(), n, mean, s2 / np.maximum(n, 1), picked.part)


def _paired(picked: Picked, other: Picked, value: Side, against: Side, is_joint: Flags) -> tuple[Side, Side, Numbers]:
    """For points whose sides are from the same experiments, use the common repetitions and their covariance."""
    both = picked.values.join(other.values, on=AT, how="inner", suffix="_other")
    rows = (
        pl.DataFrame({"experiment": value.experiment})
        .cast({"experiment": both.schema["experiment"]})
        .join(
            both.group_by("experiment").agg(
                pl.len().alias("n"),
                pl.col("value").mean().alias("x"),
                pl.col("value_other").mean().alias("y"),
                pl.col("value").var().alias("xx"),
                pl.col("value_other").var().alias("yy"),
                pl.cov("value", "value_other").alias("xy"),
            ),
            on="experiment",
            how="left",
            maintain_order="left",
        )
    )
    n = np.where(is_joint, rows["n"].fill_null(0).cast(pl.Int64).to_numpy(), 0)

    def merged(name: str, separate: Numbers, missing: float) -> Numbers:
        column = rows[name].cast(pl.Float64).fill_nan(None).fill_null(missing).to_numpy()
        return np.where(is_joint, column if name in ("x", "y") else column / np.maximum(n, 1), separate)

    sides = [
        Side(
            side.experiment,
            np.where(is_joint, n, side.n),
            merged(mean, side.mean, float("nan")),
            merged(variance, side.variance, 0.0),
            side.part,
        )
        for side, mean, variance in ((value, "x", "xx"), (against, "y", "yy"))
    ]
    return sides[0], sides[1], merged("xy", np.zeros(len(n)), 0.0)


def _draw(side: Side, rng: np.random.Generator) -> Numbers:
    """Draw deviations from the mean; points of the same experiment share them."""
    _, first, index = np.unique(side.experiment, return_index=True, return_inverse=True)
    deviations = np.sqrt(side.variance[first]) * rng.standard_t(side.df[first], (DRAWS, len(first)))
    return np.asarray(deviations[:, index], dtype=np.float64)
