"""The kinds of connections of a CDN's PoP, and the distribution of its clients over paths.

The kinds are those of Shah, *BBR Evaluation at a Large CDN* (2019); the paths are scenarios in scenarios/cdn.
docs/reference/synth.md describes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

CONTROL = "cubic"
TREATMENT = "bbr"
ARMS = (CONTROL, TREATMENT)
"""Congestion controls, by the number of the arm."""


@dataclass(frozen=True)
class PathClass:
    """A kind of connections."""

    name: str
    """Name of the class and of its scenario."""
    share: float
    clients: int
    """Number of client networks, each a /24 or a /48 whose connections share one path."""
    rates: Mapping[str, float]
    """Values of path.rate, ascending, each with its fraction of clients."""
    rtts: Mapping[str, float]
    losses: Mapping[float, float]
    sizes: Mapping[str, float]
    """Sizes of objects, each with its fraction of connections."""
    transfers: int
    """Maximum number of objects per connection, as in the scenario (requests.count)."""
    another: float
    """Probability of another object on the same connection."""
    think_s: float
    """Mean time until the next object is requested."""
    asn: int
    """Autonomous system number, from the range for documentation (RFC 5398)."""
    as_name: str
    cgroup: str

    @property
    def axes(self) -> tuple[tuple[str | float, ...], ...]:
        """Simulated values of rate, RTT, loss and size, one axis each."""
        return tuple(self.rates), tuple(self.rtts), tuple(self.losses), tuple(self.sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis; the arms are the last axis."""
        return *(len(axis) for axis in self.axes), len(ARMS)


PAGES = {"30kB": 0.35, "300kB": 0.3, "1MB": 0.2, "3MB": 0.1, "10MB": 0.05}
"""Object sizes for clients: pages and pictures, segments of video, some downloads."""
FILLS = {"1MB": 0.25, "3MB": 0.35, "10MB": 0.3, "30MB": 0.1}
"""Object sizes between caches: cache misses are large."""
EDGE, FILL = "/system.slice/edge.service", "/system.slice/fill.service"

CLASSES = (
    PathClass(
        "wireless", 0.55, 1500, {"5Mbps": 0.3, "12Mbps": 0.4, "25Mbps": 0.3}, {"50ms": 0.6, "90ms": 0.4},
        {0.0: 0.77, 0.0005: 0.165, 0.005: 0.065}, PAGES, 3, 0.4, 4.0, 64496, "Example Wireless", EDGE,
    ),
    PathClass(
        "wireline", 0.03, 1200, {"20Mbps": 0.3, "50Mbps": 0.4, "100Mbps": 0.3}, {"15ms": 0.6, "35ms": 0.4},
        {0.0: 0.5, 0.0002: 0.3, 0.002: 0.2}, PAGES, 8, 0.9, 4.0, 64497, "Example Wireline", EDGE,
    ),
    PathClass(
        "far-lossy", 0.15, 600, {"10Mbps": 0.4, "20Mbps": 0.4, "30Mbps": 0.2}, {"150ms": 0.5, "180ms": 0.5},
        {0.005: 0.5, 0.02: 0.5}, PAGES, 3, 0.4, 4.0, 64498, "Example AS 1", EDGE,
    ),
    PathClass(
        "far-clean", 0.15, 600, {"10Mbps": 0.4, "20Mbps": 0.4, "30Mbps": 0.2}, {"150ms": 0.5, "180ms": 0.5},
        {0.0: 0.8, 1e-5: 0.2}, PAGES, 3, 0.4, 4.0, 64499, "Example AS 2", EDGE,
    ),
    PathClass(
        "pop-to-pop", 0.07, 60, {"0.5Gbps": 0.4, "1Gbps": 0.6}, {"20ms": 0.5, "40ms": 0.5},
        {1e-7: 1.0}, FILLS, 3, 0.8, 30.0, 64500, "Example CDN", FILL,
    ),
    PathClass(
        "intra-pop", 0.05, 40, {"5Gbps": 0.5, "10Gbps": 0.5}, {"0.1ms": 0.5, "0.2ms": 0.5},
        {1e-7: 1.0}, FILLS, 3, 0.8, 30.0, 64500, "Example CDN", FILL,
    ),
)  # fmt: skip

TRANSFERS = max(kind.transfers for kind in CLASSES)
"""Maximum number of objects per connection, over all classes."""
