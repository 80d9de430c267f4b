"""Small made-up fleets, for tests of what is in them."""

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from thalweg import records, synth

CCS = ("cubic", "bbr")


def world(rows: int = 20_000, **settings: object) -> synth.World:
    """What is behind some records of a planted truth."""
    chosen = {"truth": "none", "days": 2} | settings
    return synth.make(synth.Settings(rows=rows, **chosen))


def written(folder: Path, rows: int = 20_000, **settings: object) -> synth.World:
    """Write them into a folder."""
    made = world(rows, **settings)
    synth.write(made, folder)
    return made


def read(folder: Path) -> pl.DataFrame:
    """All rows, as `thalweg records` takes them: without those that a later one replaces."""
    found = records.read([folder / synth.RECORDS])
    assert not found.left_out
    return found.rows.collect()


def classes(frame: pl.DataFrame) -> pl.DataFrame:
    """Add each row's class, by its address."""
    number = pl.col("remote_address").str.extract(r"^10\.(\d+)\.").cast(pl.Int64) // 16
    of_v6 = pl.col("remote_address").str.extract(r"^2001:db8:([0-9a-f]+)::").str.to_integer(base=16) // 4096
    names = [kind.name for kind in synth.CLASSES]
    at = pl.coalesce(number, of_v6)
    return frame.with_columns(pl.Series(names).gather(frame.select(at).to_series()).alias("class"))


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, and how far chance may carry it."""

    value: float
    error: float
    """Standard error of its logarithm, if values were lognormal and independent: pi / 2 of a mean's variance."""

    def is_near(self, truth: float) -> bool:
        """Say whether the truth is within four standard errors, and one more for what connections share."""
        return abs(math.log(self.value / truth)) < 5 * self.error


def medians(frame: pl.DataFrame, column: str, *, is_small: bool) -> dict[str, Ratio]:
    """Ratio of the medians of the two algorithms, by class, of transfers below or from 3 MB on."""
    size = pl.col("acked_bytes") < 3_000_000
    some = frame.filter((pl.col("kind") == "transfer") & (size if is_small else ~size))
    found = some.group_by("class", "cc").agg(
        pl.col(column).median(), (math.pi / 2 * pl.col(column).log().var() / pl.len()).alias("variance")
    )
    arms = {(kind, cc): (median, variance) for kind, cc, median, variance in found.iter_rows()}
    return {
        kind: Ratio(
            arms[kind, "bbr"][0] / arms[kind, "cubic"][0], math.hypot(*(arms[kind, cc][1] ** 0.5 for cc in CCS))
        )
        for kind in found["class"].unique()
    }
