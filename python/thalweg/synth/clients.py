"""Clients: networks with a path, a share of the load and an address."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from thalweg.synth.chance import Purpose, stream
from thalweg.synth.classes import CLASSES
from thalweg.synth.planted import Spread
from thalweg.synth.pool import Floats, Integers

POPS = {"ams": 0.35, "fra": 0.25, "sin": 0.2, "gru": 0.12, "nrt": 0.08}
"""Points of presence, with their fraction of all rows."""

IPV6_EVERY = 5
"""One in this number of clients uses IPv6."""


@dataclass(frozen=True)
class Clients:
    """All clients, as arrays by client number."""

    kind: Integers
    pop: Integers
    rate: Integers
    """Position on the rate axis of the class; `rtt` and `loss` are positions on their axes."""
    rtt: Integers
    loss: Integers
    log_factor: Floats
    """Logarithm of the scale of the client's completion times."""
    weight: Floats
    """Share of the connections of its PoP."""
    addresses: tuple[str, ...]
    """Networks, in the format of truncated addresses in records."""

    @cached_property
    def ip_version(self) -> Integers:
        """4 or 6."""
        return np.array([6 if ":" in address else 4 for address in self.addresses], dtype=np.int64)


def draw(seed: int, spread: Spread) -> Clients:
    """Draw the clients."""
    rng = stream(seed, Purpose.CLIENTS)
    parts: list[tuple[Integers, ...]] = []
    addresses: list[str] = []
    for number, kind in enumerate(CLASSES):
        axes = (kind.rates, kind.rtts, kind.losses)
        paths = [rng.choice(len(axis), kind.clients, p=_shares(axis.values())) for axis in axes]
        order = np.arange(kind.clients)
        parts.append((np.full(kind.clients, number), order % len(POPS), *paths))
        addresses += [address(number, client_number) for client_number in range(kind.clients)]
    kind_, pop, rate, rtt, loss = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    log_factor = spread.client * rng.standard_normal(len(addresses))
    activity = np.exp(spread.activity * rng.standard_normal(len(addresses)))
    weight = np.zeros(len(addresses))
    shares = _shares(kind.share for kind in CLASSES)
    for pop_index in range(len(POPS)):
        for number, share in enumerate(shares):
            is_here = (kind_ == number) & (pop == pop_index)
            weight[is_here] = share * activity[is_here] / activity[is_here].sum()
    return Clients(kind_, pop, rate, rtt, loss, log_factor, weight, tuple(addresses))


def address(kind: int, number: int) -> str:
    """Return the network of a class's client, in private or documentation address space.

    >>> address(0, 1), address(2, 300), address(2, 4)
    ('10.0.1.0/24', '10.33.44.0/24', '2001:db8:2004::/48')
    """
    if number % IPV6_EVERY == IPV6_EVERY - 1:
        return f"2001:db8:{kind << 12 | number:x}::/48"
    return f"10.{kind << 4 | number >> 8}.{number & 0xFF}.0/24"


def networks(kind: int) -> Iterator[tuple[str, str]]:
    """Yield the networks of a class's clients, each with its country; one of them contains another.

    >>> list(networks(1))
    [('10.16.0.0/12', 'XA'), ('10.16.0.0/14', 'XB'), ('2001:db8:1000::/36', 'XA')]
    """
    yield f"10.{kind << 4}.0.0/12", "XA"
    yield f"10.{kind << 4}.0.0/14", "XB"
    yield f"2001:db8:{kind << 12:x}::/36", "XA"


def _shares(values: Iterable[float]) -> Floats:
    shares = np.array(list(values), dtype=np.float64)
    return np.asarray(shares / shares.sum())
