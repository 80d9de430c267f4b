"""Derives one seed per experiment.

It is a hash of the scenario's seed, the sweep's values at the point, and the repetition number. The index of the point
is not included, so that values can be added to a sweep without changing the other experiments.
"""

import hashlib
import json
from collections.abc import Mapping

from thalweg.scenario.document import Value

SEED_BITS = 53
"""Number of bits of a seed, so that JSON readers with doubles represent it exactly."""


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


def derive(seed: int, assignment: Mapping[str, Value], repetition: int) -> int:
    """Derive the seed of an experiment.

    >>> derive(1, {"path.buffer": "1bdp"}, 0) == derive(1, {"path.buffer": "1bdp"}, 0)
    True
    >>> derive(1, {"path.buffer": "1bdp"}, 0) == derive(1, {"path.buffer": "1bdp"}, 1)
    False
    """
    canonical = {key: number(value) for key, value in assignment.items()}
    text = _encode([seed, canonical, repetition])
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return int.from_bytes(digest[:8], "big") & ((1 << SEED_BITS) - 1)


def number(value: Value) -> Value:
    """Normalise whole numbers: 1 and 1.0 are the same point of a sweep."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
