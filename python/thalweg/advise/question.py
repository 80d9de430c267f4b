"""The question about the records: the compared algorithms, their assignment, the dimensions, and the limits."""

from dataclasses import dataclass, field
from typing import Literal

from thalweg.errors import ThalwegError

DesignName = Literal["ab", "before-after", "switchback"]
ClusterName = Literal["prefix-hour", "prefix", "hour", "pair"]

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US

CLUSTERS: dict[DesignName, ClusterName] = {"ab": "prefix", "before-after": "hour", "switchback": "pair"}
"""Unit that is drawn as a whole when uncertainty is estimated: samples that depend on each other, given the assignment
of the algorithms. In a part within one network, hours are drawn instead of networks.
"""

DEFAULT_SEGMENTS = ("rtt", "retransmits")
"""Dimensions of a destination that need no user's table."""


@dataclass(frozen=True)
class Design:
    """The assignment of treatment and control.

    `ab`: both at the same time, connection by connection or client by client. `before-after`: control until `at_us`,
    treatment from then on. `switchback`: one of them at a time, changed every `every_us`.
    """

    name: DesignName = "ab"
    at_us: int | None = None
    """UNIX time of the activation."""
    every_us: int = HOUR_US
    """Length of each turn of a switchback."""
    unit: str | None = None
    """Column of the records with the units of a switchback, such as `pop`; None: all rows are one unit."""

    def __post_init__(self) -> None:
        if (self.name == "before-after") != (self.at_us is not None):
            raise ThalwegError(
                "bad-design",
                "before-after needs a time of activation, and the other designs have none",
                place="--at",
                expected="--design before-after --at 2026-01-31T12:00",
            )
        if self.every_us < SECOND_US:
            raise ThalwegError(
                "bad-design", "a turn lasts less than a second", place="--every", expected="a time such as 1h"
            )
        if self.unit is not None and self.name != "switchback":
            raise ThalwegError(
                "bad-design",
                f"only a switchback has turns; this is {self.name}",
                place="--turns-of",
                expected=f"--design switchback --turns-of {self.unit}",
            )


@dataclass(frozen=True)
class Question:
    """Everything that an answer depends on, except the records."""

    treatment: str = "bbr"
    control: str = "cubic"
    design: Design = field(default_factory=Design)
    segments: tuple[str, ...] = DEFAULT_SEGMENTS
    """Dimensions: names of `segments.SEGMENTS`, or columns of the records."""
    cluster: ClusterName | None = None
    """None: according to the design."""
    size_limit_bytes: int = 3_000_000
    """Smaller transfers are judged by their completion time, others by their throughput. A large CDN's limit (Shah
    2019).
    """
    least_samples: int = 500
    """Minimum transfers of an arm."""
    false_share: float = 0.05
    """Share of the verdicts for an algorithm that may be false (Benjamini and Hochberg 1995)."""
    margin: float = 0.05
    """A difference counts as none once it is known to be smaller than this."""
    without_receiver_limited: bool = False
    """Whether samples that their receivers limited are excluded."""
    replicates: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        if self.treatment == self.control:
            raise ThalwegError(
                "same-arms",
                f"`{self.treatment}` cannot be compared with itself",
                place="--treatment",
                expected="two algorithms, such as --treatment bbr --control cubic",
            )
        if len(set(self.segments)) != len(self.segments):
            raise ThalwegError("twice", "a segment is named twice", place="--by", found=", ".join(self.segments))

    @property
    def clusters(self) -> ClusterName:
        """Unit that is drawn as a whole."""
        return self.cluster or CLUSTERS[self.design.name]
