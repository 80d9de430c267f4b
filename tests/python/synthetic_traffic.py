"""Records with a planted truth: synthetic traffic of many clients with exactly known effects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from synthetic_records import NOON_US, SECOND
from thalweg.records.schema import SCHEMA

HOUR_US = 3600 * SECOND

Effect = Callable[[Mapping[str, np.ndarray]], np.ndarray | float]
"""A number per row: the factor on the duration of transfers with the treatment, or a probability."""


@dataclass(frozen=True)
class Traffic:
    """Parameters of the traffic; all times of a client share a random factor."""

    rows: int = 20_000
    seed: int = 1
    clients: int = 400
    hours: int = 24
    effect: Effect = lambda _: 1.0
    share: Effect = lambda _: 0.5
    """Probability of the treatment, per row."""
    is_by_client: bool = False
    """Whether clients, not connections, are assigned to arms."""
    spread: float = 0.6
    """Standard deviation of the logarithm of a transfer's random factor."""
    of_client: float = 0.4
    """Standard deviation of the logarithm of a client's random factor."""
    size_bytes: tuple[int, int] = (20_000, 200_000)
    changes: Mapping[str, Any] = field(default_factory=dict)

    def frame(self) -> pl.DataFrame:
        """Return the records."""
        chance = np.random.default_rng(self.seed)
        client = chance.integers(0, self.clients, self.rows)
        luck = chance.normal(0, self.of_client, self.clients)
        hour = chance.integers(0, self.hours, self.rows)
        of_hour = chance.normal(0, 0.1, self.hours)
        # Clients with even numbers are near, the others are far away.
        is_far = client % 2 == 1
        given = {"client": client, "hour": hour, "is_far": is_far}
        lot = chance.random(self.clients)[client] if self.is_by_client else chance.random(self.rows)
        is_treated = lot < self.share(given)
        low, high = self.size_bytes
        size = np.exp(chance.uniform(np.log(low), np.log(high), self.rows)).astype(np.int64)
        log = np.log(50_000.0) + luck[client] + of_hour[hour] + chance.normal(0, self.spread, self.rows) + 0.3 * is_far
        log += 0.3 * np.log(size / low)
        log += np.where(is_treated, np.log(np.broadcast_to(self.effect(given), self.rows)), 0.0)
        fct_us = np.maximum(np.exp(log), 1).astype(np.int64)
        start_us = NOON_US + hour * HOUR_US + chance.integers(0, HOUR_US - SECOND, self.rows)
        segments = np.maximum(size // 1448, 1)
        retransmits = chance.binomial(segments, np.where(is_far, 0.03, 0.0002))
        rtt_us = np.where(is_far, 120_000, 20_000) + chance.integers(0, 2_000, self.rows)
        columns = {
            "end_us": start_us + np.minimum(fct_us, SECOND),
            "connection": np.arange(self.rows),
            "kind": np.full(self.rows, "transfer"),
            "transfer": np.zeros(self.rows, dtype=np.int64),
            "source": np.full(self.rows, "agent"),
            "machine": np.full(self.rows, "web1"),
            "start_us": start_us,
            "remote_address": np.array([f"198.{51 + n // 256}.{n % 256}.0/24" for n in range(self.clients)])[client],
            "cc_at_open": np.where(is_treated, "bbr", "cubic"),
            "cc": np.where(is_treated, "bbr", "cubic"),
            "acked_bytes": size,
            "segments": segments + retransmits,
            "retransmits": retransmits,
            "rtt_min_us": rtt_us,
            "rtt_max_us": rtt_us + np.where(retransmits > 0, 30_000, 3_000) + chance.integers(0, 3_000, self.rows),
            "fct_us": fct_us,
            "goodput_bps": size * 8e6 / fct_us,
        }
        return whole(pl.DataFrame(columns).with_columns(**{k: pl.lit(v) for k, v in self.changes.items()}))


def whole(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the missing columns as null, in order."""
    missing = [pl.lit(None).alias(name) for name in SCHEMA if name not in frame.columns]
    return frame.with_columns(missing).select(SCHEMA.names()).cast(dict(SCHEMA))


def write(file: Path, frame: pl.DataFrame) -> Path:
    """Write a file of records."""
    file.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(file)
    return file
