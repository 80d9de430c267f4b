"""Computes the true differences between the algorithms in synthetic records, by class.

The truth is not estimated from the rows but computed from their distribution: every client, hour, size and connection
of the pool with its probability, and the exact lognormal factors. Both arms have the same probabilities, so the result
is the difference if the same connections had one algorithm or the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue
from scipy.optimize import brentq
from scipy.special import ndtr

from thalweg import __version__
from thalweg.synth.classes import ARMS, CLASSES, CONTROL, TREATMENT
from thalweg.synth.pool import Floats, sizes_bytes
from thalweg.synth.settings import AB, FIRST_DAY, SIZE_LIMIT_BYTES, Settings
from thalweg.synth.world import BUSY, LOAD, Fleet

FORMAT = 1

COMPLETION = "fct_us"
THROUGHPUT = "goodput_bps"
METRICS = (COMPLETION, THROUGHPUT)

HALF = 0.5


@dataclass(frozen=True)
class Mixture:
    """A weighted mixture of lognormal distributions with the same width."""

    weights: Floats
    medians: Floats
    sd: float
    """Standard deviation of the logarithm."""

    def __add__(self, other: "Mixture") -> "Mixture":
        return Mixture(
            np.concatenate([self.weights, other.weights]), np.concatenate([self.medians, other.medians]), self.sd
        )

    def times(self, weight: float) -> "Mixture":
        """Return a copy with its weight multiplied by a factor."""
        return Mixture(self.weights * weight, self.medians, self.sd)

    @property
    def weight(self) -> float:
        """Total weight."""
        return float(self.weights.sum())

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return float(self.weights @ self.medians / self.weight * np.exp(self.sd**2 / 2))

    @property
    def median(self) -> float:
        """Median of the mixture."""
        logs = np.log(self.medians)
        weights = self.weights / self.weight
        middle = brentq(
            lambda at: float(weights @ ndtr((at - logs) / self.sd)) - HALF,
            float(logs.min()) - 1e-6,
            float(logs.max()) + 1e-6,
            xtol=1e-12,
        )
        return float(np.exp(middle))


def truth(fleet: Fleet) -> dict[str, JsonValue]:
    """Return the content of truth.json."""
    settings = fleet.settings
    mixtures = {kind.name: {m: _mixtures(fleet, number, m) for m in METRICS} for number, kind in enumerate(CLASSES)}
    segments: list[JsonValue] = [
        {"class": kind.name, "asn": kind.asn, "metric": metric, **_ratios(mixtures[kind.name][metric])}
        for kind in CLASSES
        for metric in METRICS
    ]
    metrics: list[JsonValue] = []
    for metric in METRICS:
        real, apparent = _mixed(fleet, mixtures, metric)
        metrics.append({"metric": metric, **_ratios(real), "seen": _ratios(apparent)})
    return {"format": FORMAT, **_head(settings), "all": metrics, "segments": segments}


def _head(settings: Settings) -> dict[str, JsonValue]:
    activation = settings.activation
    return {
        "thalweg": __version__,
        "rows": settings.rows,
        "seed": settings.seed,
        "first_day": f"{FIRST_DAY:%Y-%m-%d}",
        "days": settings.days,
        "truth": settings.truth,
        "design": settings.design,
        "activation": None if activation is None else f"{activation:%Y-%m-%dT%H:%M:%SZ}",
        "treatment": TREATMENT,
        "control": CONTROL,
        "size_limit_bytes": SIZE_LIMIT_BYTES,
    }


def _ratios(arms: tuple[Mixture, Mixture]) -> dict[str, JsonValue]:
    control, treated = arms
    return {
        "ratio_of_medians": treated.median / control.median,
        "ratio_of_means": treated.mean / control.mean,
        "control_median": control.median,
        "treatment_median": treated.median,
    }


def _mixed(
    fleet: Fleet, mixtures: dict[str, dict[str, tuple[Mixture, Mixture]]], metric: str
) -> tuple[tuple[Mixture, Mixture], tuple[Mixture, Mixture]]:
    """Return the mixtures of all classes: weighted by their true shares, and by the assignment of algorithms."""
    real: list[Mixture] = []
    apparent: list[Mixture] = []
    for arm in range(len(ARMS)):
        arm_mixtures = [(mixtures[kind.name][metric][arm], number) for number, kind in enumerate(CLASSES)]
        shares = fleet.shares if fleet.settings.design == AB else np.full(len(CLASSES), 0.5)
        real.append(_sum(mixture for mixture, _ in arm_mixtures))
        apparent.append(_sum(mixture.times(shares[n] if arm else 1 - shares[n]) for mixture, n in arm_mixtures))
    return (real[0], real[1]), (apparent[0], apparent[1])


def _sum(mixtures: Iterator[Mixture]) -> Mixture:
    first = next(mixtures)
    for mixture in mixtures:
        first += mixture
    return first


def _mixtures(fleet: Fleet, number: int, metric: str) -> tuple[Mixture, Mixture]:
    spread = fleet.planted.spread
    sd = float(np.hypot(spread.hour, spread.transfer))
    mixtures = []
    for arm in range(len(ARMS)):
        parts = list(_parts(fleet, number, arm, metric))
        mixtures.append(Mixture(np.concatenate([w for w, _ in parts]), np.concatenate([v for _, v in parts]), sd))
    return mixtures[0], mixtures[1]


def _parts(fleet: Fleet, number: int, arm: int, metric: str) -> Iterator[tuple[Floats, Floats]]:
    kind, pool = CLASSES[number], fleet.pools[number]
    busy = float(LOAD[BUSY].sum() / LOAD.sum())
    continuation = kind.another ** np.arange(kind.transfers)
    sizes = sizes_bytes(kind)
    for rate, rtt, loss, weights, factors in _paths(fleet, number):
        for hours, at in ((1 - busy, rate), (busy, max(rate - 1, 0))):
            for size, share in enumerate(kind.sizes.values()):
                if (sizes[size] < SIZE_LIMIT_BYTES) != (metric == COMPLETION):
                    continue
                cell = int(np.ravel_multi_index((at, rtt, loss, size, arm), pool.shape))
                fct_us, weights_ = _distinct(pool.fct_us[cell].ravel(), np.tile(continuation, pool.connections))
                value = fct_us if metric == COMPLETION else 8e6 * sizes[size] / fct_us
                scaled = factors if metric == COMPLETION else 1 / factors
                yield (
                    np.outer(weights * hours * share, weights_ / pool.connections).ravel(),
                    np.outer(scaled, value).ravel(),
                )


def _distinct(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, np.bincount(index.ravel(), weights=weights).astype(np.float64)


def _paths(fleet: Fleet, number: int) -> Iterator[tuple[int, int, int, Floats, Floats]]:
    """Yield the paths of a class's clients, with the weights and factors of these clients.

    Clients with the same factor are merged.
    """
    clients = fleet.clients
    class_clients = np.flatnonzero(clients.kind == number)
    weight = clients.weight[class_clients] * fleet.pop_shares[clients.pop[class_clients]]
    columns = (clients.rate, clients.rtt, clients.loss, clients.log_factor)
    keys, index = np.unique(np.column_stack([column[class_clients] for column in columns]), axis=0, return_inverse=True)
    weights = np.bincount(index.ravel(), weights=weight, minlength=len(keys))
    paths, path = np.unique(keys[:, :3].astype(np.int64), axis=0, return_inverse=True)
    for at, (rate, rtt, loss) in enumerate(paths):
        is_path = path.ravel() == at
        yield int(rate), int(rtt), int(loss), weights[is_path], np.exp(keys[is_path, 3])
