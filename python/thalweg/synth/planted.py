"""Planted truths, which are exact, because they do not use the simulator.

Completion times are computed from the size and the path. Clients, hours and objects scale them by lognormal factors,
which both arms share; the treatment scales them by a known number. Within a class, the ratio of every quantile and of
the means is therefore this number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from thalweg.scenario.text import quantities
from thalweg.synth.classes import CLASSES, PathClass
from thalweg.synth.pool import AGES_S, Floats, Pool, path_rtts_us, sizes_bytes

PAYLOAD_BYTES = 1448
"""Payload of a full segment on Ethernet, with timestamps."""
WINDOW_BYTES = 10 * PAYLOAD_BYTES
"""Initial window (RFC 6928)."""

SLOW = ("wireless", "far-lossy", "far-clean")


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of the random factors of completion times and of load."""

    client: float
    hour: float
    """Spread between a client's hours; its connections in an hour share the factor."""
    transfer: float
    activity: float = 1.0
    """Spread of the clients' load; with 1 the busiest tenth has about 40 % of the connections."""


SIMULATED_SPREAD = Spread(client=0.0, hour=0.1, transfer=0.1)
"""Additional spread by servers and by other traffic; the simulation already varies paths and losses."""
WIDE = Spread(client=0.5, hour=0.3, transfer=0.5)


@dataclass(frozen=True)
class Planted:
    """A truth with chosen parameters."""

    about: str
    ratios: Mapping[str, float] = field(default_factory=dict)
    """Ratio of completion times with and without the treatment, by class; 1 for classes that are not listed."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Fraction of a class's connections with the treatment; one half for classes that are not listed."""
    is_by_client_hour: bool = False
    spread: Spread = WIDE

    @property
    def is_about_arms(self) -> bool:
        """Return whether it determines the assignment of arms."""
        return bool(self.shares) or self.is_by_client_hour


def _all(ratio: float) -> dict[str, float]:
    return {kind.name: ratio for kind in CLASSES}


PLANTED: Mapping[str, Planted] = {
    "none": Planted("Nothing differs."),
    "tiny": Planted("Everything takes 5 % less time with the treatment.", _all(0.95)),
    "reversed": Planted(
        "Reversed effects: distant and lossy clients are slower with the treatment, the CDN's own traffic is faster.",
        {"wireless": 1.1, "far-lossy": 1.25, "pop-to-pop": 0.8, "intra-pop": 0.8},
    ),
    "paradox": Planted(
        "Within every class the treatment takes 10 % less time; but slow classes get it more often, so that"
        " overall it seems to take longer.",
        _all(0.9),
        {kind.name: 0.85 if kind.name in SLOW else 0.15 for kind in CLASSES},
    ),
    "correlated": Planted(
        "Nothing differs; but a client's connections of an hour share their conditions and their arm, so that there"
        " are far fewer independent observations than connections.",
        is_by_client_hour=True,
        # A few clients have most of the load; otherwise hardly any client would have several connections within an
        # hour.
        spread=Spread(client=0.5, hour=0.8, transfer=0.3, activity=2.5),
    ),
}


CONNECTIONS = 20
"""Number of connections of each cell. Each rounds the expected retransmissions at a different fraction, so that their
mean ratio does not depend on the size.
"""


def planted_pool(kind: PathClass, ratio: float) -> Pool:
    """Create the connections of a class; within a cell, all its objects take the same time."""
    rate, rtt, loss, size, arm, rounding = np.meshgrid(
        np.array([quantities.rate(text) for text in kind.rates], dtype=np.float64),
        path_rtts_us(kind),
        np.array(list(kind.losses)),
        sizes_bytes(kind).astype(np.float64),
        np.array([1.0, ratio]),
        (np.arange(CONNECTIONS) + 0.5) / CONNECTIONS,
        indexing="ij",
    )
    rounds = np.log2(1 + size / WINDOW_BYTES)
    fct_us = (rtt * rounds + 8e6 * size / rate) * arm
    segments = np.ceil(size / PAYLOAD_BYTES)
    retransmits = np.floor(segments * loss + rounding)
    dense = partial(_dense, transfers=kind.transfers)
    return Pool(
        kind.shape,
        dense(fct_us),
        dense(segments + retransmits).astype(np.int64),
        dense(retransmits).astype(np.int64),
        dense(rtt),
        dense(1.2 * rtt),
        dense(1.5 * rtt),
        np.full((fct_us.size // CONNECTIONS, CONNECTIONS, len(AGES_S)), np.nan),
    )


def _dense(values: Floats, transfers: int) -> Floats:
    return np.repeat(values.reshape(-1, CONNECTIONS, 1), transfers, axis=2)
