"""The number of networks behind a comparison, and whether it depends on one of them.

If one network has most of the samples of a class, they are little evidence about the others. Two numbers show this: the
effective number of networks (Kish 1965), and the effect without each network that has a notable share (leave-one-out).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.advise.statistics.effects import Effect

MIN_NETWORKS = 10.0
"""Effective number of networks below which a metric of a part gets no verdict."""

MAJOR_SHARE = 0.5
"""Fraction of the effect above which the contribution of a network dominates it."""


@dataclass(frozen=True)
class Heavy:
    """A network with a notable share of an arm."""

    network: str
    share: float
    """Fraction of the arm's weight, in the arm in which it is larger."""
    log_added: float | None
    """Contribution to the logarithm of the effect; None: without it an arm has no samples."""

    def adds_to(self, log: float) -> float:
        """Return its contribution in the direction of an effect (a logarithm); infinite if it is unknown."""
        return math.inf if self.log_added is None else math.copysign(self.log_added, self.log_added * log)


@dataclass(frozen=True)
class Networks:
    """The networks behind one metric of one part."""

    count: int
    """Number of networks with a sample; samples without an address do not count."""
    effective: float | None
    """Effective number of networks (Kish), in the arm that has fewer; None: most of the weight has no address."""
    unknown_share: float
    """Fraction of the weight without an address."""
    heavy: tuple[Heavy, ...]
    """Networks with a notable share, the largest first."""

    @property
    def are_few(self) -> bool:
        """Whether there are too few networks to represent a class of destinations."""
        return self.effective is not None and self.effective < MIN_NETWORKS

    def carrier(self, effect: Effect) -> Heavy | None:
        """Return the network without which most of an effect vanishes, if there is one."""
        if self.effective is None:
            return None
        log = math.log(effect.ratio)
        heaviest = max(self.heavy, key=lambda network: network.adds_to(log), default=None)
        return heaviest if heaviest and heaviest.adds_to(log) > MAJOR_SHARE * abs(log) else None


ByMetric = Mapping[int, Networks]
"""Networks by the number of the metric."""
