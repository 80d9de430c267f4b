"""The model from which records are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.synth import clients
from thalweg.synth.chance import Purpose, stream
from thalweg.synth.classes import CLASSES
from thalweg.synth.clients import POPS, Clients
from thalweg.synth.planted import PLANTED, SIMULATED_SPREAD, Planted, planted_pool
from thalweg.synth.pool import Booleans, Floats, Integers, Pool
from thalweg.synth.settings import BEFORE_AFTER, SWITCHBACK, Settings

HOURS = 24
SLOT_HOURS = 6
"""Hours of data in a file."""

LOAD = 1 + 0.7 * np.cos((np.arange(HOURS) - 20) / HOURS * 2 * np.pi)
"""Connections opened per hour, relative to the day's mean: a sine wave with its maximum at 20:00."""

BUSY = (np.arange(HOURS) >= 18) & (np.arange(HOURS) < 23)
"""Busy hours, in which a client shares its access link: it has the next lower rate of its class, if there is one."""


@dataclass(frozen=True)
class Local:
    """The clients of a PoP."""

    numbers: Integers
    cumulative: Floats
    """Cumulative shares of the PoP's connections."""


@dataclass(frozen=True)
class Fleet:
    """The model from which records are drawn."""

    settings: Settings
    clients: Clients
    pools: tuple[Pool, ...]
    """Pools, by the number of the class."""
    planted: Planted
    """The planted truth; for the simulated truth, only its spread is set."""

    @cached_property
    def shares(self) -> Floats:
        """Probability of the treatment by class, if the assignment is random."""
        return np.array([self.planted.shares.get(kind.name, 0.5) for kind in CLASSES])

    @cached_property
    def pop_shares(self) -> Floats:
        """Fraction of all connections at each PoP."""
        return np.array(list(POPS.values()))

    @cached_property
    def local(self) -> tuple[Local, ...]:
        """The clients of each PoP."""
        numbers = [np.flatnonzero(self.clients.pop == pop) for pop in range(len(POPS))]
        return tuple(Local(number, np.cumsum(self.clients.weight[number])) for number in numbers)

    def hour_effects(self, day: int, pop: int, slot: int) -> Floats:
        """Return the standard normal effects of the hours of a slot on the clients of a PoP, by client and hour."""
        rng = stream(self.settings.seed, Purpose.HOUR_EFFECTS, day, pop, slot)
        return rng.standard_normal((len(self.local[pop].numbers), SLOT_HOURS))

    def arms(
        self, kind: Integers, hour_effects: Floats, day: int, hour: Integers, rng: np.random.Generator
    ) -> Integers:
        """Return the arm of each connection: 1 for the treatment, 0 for the control."""
        draws = rng.random(len(kind))
        is_treated: Booleans
        if self.settings.design == BEFORE_AFTER:
            is_treated = np.full(len(kind), day >= self.settings.activation_day)
        elif self.settings.design == SWITCHBACK:
            # The day is included, so that the same hour of the day alternates.
            is_treated = (hour + day) % 2 == 1
        elif self.planted.is_by_client_hour:
            is_treated = _coin(hour_effects)
        else:
            is_treated = draws < self.shares[kind]
        return is_treated.astype(np.int64)


def make(settings: Settings, pools: Mapping[str, Pool] | None = None) -> Fleet:
    """Create the model; a planted truth does not need `pools` of the simulator."""
    truth = PLANTED.get(settings.truth, Planted("", spread=SIMULATED_SPREAD))
    if pools is None:
        pools = {kind.name: planted_pool(kind, truth.ratios.get(kind.name, 1.0)) for kind in CLASSES}
    drawn_clients = clients.draw(settings.seed, truth.spread)
    return Fleet(settings, drawn_clients, tuple(pools[kind.name] for kind in CLASSES), truth)


def _coin(hour_effects: Floats) -> Booleans:
    """Return a random bit per client and hour, from low-order digits of its effect, which are independent of
    its size.
    """
    return np.asarray(np.floor(hour_effects * 1e6).astype(np.int64) % 2 == 1)
