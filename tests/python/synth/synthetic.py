"""Small synthetic fleets, for tests of their content."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from thalweg import records, synth

CCS = ("cubic", "bbr")
HOUR_US = 3_600_000_000
REPLICATES = 100


def world(rows: int = 20_000, **settings: object) -> synth.Fleet:
    """Return the model of records with a planted truth."""
    chosen = {"truth": "none", "days": 2} | settings
    return synth.make(synth.Settings(rows=rows, **chosen))


def written(folder: Path, rows: int = 20_000, **settings: object) -> synth.Fleet:
    """Write records with a planted truth into a folder, and return their model."""
    generated = world(rows, **settings)
    synth.write(generated, folder)
    return generated


def read(folder: Path) -> pl.DataFrame:
    """Return all rows that `thalweg records` reads, without those that a later one replaces."""
    result = records.read([folder / synth.RECORDS])
    assert not result.left_out
    return result.rows.collect()


def classes(frame: pl.DataFrame) -> pl.DataFrame:
    """Add each row's class, from its address."""
    number = pl.col("remote_address").str.extract(r"^10\.(\d+)\.").cast(pl.Int64) // 16
    of_v6 = pl.col("remote_address").str.extract(r"^2001:db8:([0-9a-f]+)::").str.to_integer(base=16) // 4096
    names = [kind.name for kind in synth.CLASSES]
    at = pl.coalesce(number, of_v6)
    return frame.with_columns(pl.Series(names).gather(frame.select(at).to_series()).alias("class"))


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, and its standard error."""

    value: float
    error: float
    """Standard error of its logarithm, by a bootstrap over clients and hours, which includes the dependence within
    clusters.
    """

    def is_near(self, truth: float) -> bool:
        """Return whether the truth is within four standard errors."""
        return abs(math.log(self.value / truth)) < 4 * self.error


def medians(frame: pl.DataFrame, column: str, *, is_small: bool) -> dict[str, Ratio]:
    """Return the ratio of the medians of the two algorithms, by class, for transfers below or from 3 MB on."""
    size = pl.col("acked_bytes") < 3_000_000
    rows = frame.filter((pl.col("kind") == "transfer") & (size if is_small else ~size))
    cluster = pl.struct("remote_address", pl.col("start_us") // HOUR_US).rank("dense") - 1
    rows = rows.with_columns(cluster.alias("cluster"))
    chance = np.random.default_rng(1)
    # A cluster has the same random weight (Poisson bootstrap) in both arms.
    drawn = chance.poisson(1, (REPLICATES, rows.select(pl.col("cluster").max() + 1).item()))
    return {
        kind: _ratio(*(of_kind.filter(pl.col("cc") == cc).sort(column) for cc in CCS), column, drawn)
        for (kind,), of_kind in rows.partition_by("class", as_dict=True).items()
    }


def _ratio(control: pl.DataFrame, treatment: pl.DataFrame, column: str, drawn: np.ndarray) -> Ratio:
    values = [
        np.log([_median(arm, column, weights[arm["cluster"]]) for weights in (np.ones_like(drawn[0]), *drawn)])
        for arm in (control, treatment)
    ]
    logs = values[1] - values[0]
    return Ratio(math.exp(logs[0]), float(logs[1:].std(ddof=1)))


def _median(arm: pl.DataFrame, column: str, weights: np.ndarray) -> float:
    below = np.cumsum(weights)
    return float(arm[column][int(np.searchsorted(below, below[-1] / 2))])
