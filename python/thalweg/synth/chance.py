"""Random streams for each purpose and position, so that files do not depend on one another."""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """Purpose of a random stream."""

    CLIENTS = 0
    HOUR_EFFECTS = 1
    """Effect of an hour on a client, the same for all machines of a PoP."""
    CONNECTIONS = 2


def stream(seed: int, purpose: Purpose, *indices: int) -> np.random.Generator:
    """Return the random stream of a purpose; `indices` distinguish streams of the same purpose.

    >>> stream(1, Purpose.CLIENTS).integers(1000) == stream(1, Purpose.CLIENTS).integers(1000)
    np.True_
    >>> stream(1, Purpose.HOUR_EFFECTS, 0).integers(2**62) == stream(1, Purpose.HOUR_EFFECTS, 1).integers(2**62)
    np.False_
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(int(purpose), *indices))))
