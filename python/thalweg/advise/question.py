"""The question about the records: arms, their assignment, dimensions, and limits."""

from dataclasses import dataclass, field
from typing import Literal

from thalweg.errors import ThalwegError
from thalweg.records.where import Where

DesignName = Literal["ab", "before-after", "switchback"]
ClusterName = Literal["prefix-hour", "prefix", "hour", "pair"]

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 3600 * SECOND_US

CLUSTERS: dict[DesignName, ClusterName] = {"ab": "prefix", "before-after": "hour", "switchback": "pair"}
"""Default cluster of each design: the set of dependent samples that the bootstrap resamples as one unit."""

DEFAULT_SEGMENTS = ("rtt", "retransmits")
"""Default dimensions: properties of a destination that do not need a user's table."""


@dataclass(frozen=True)
class Design:
    """The assignment of treatment and control.

    `ab`: both at the same time, assigned per connection or per client. `before-after`: control until `at_us`, treatment
    from then on. `switchback`: one arm per period of `period_us`, of each unit if set; the arms alternate.

    Raises:
        ThalwegError: If a setting is missing, does not belong to the design, or is invalid.
    """

    name: DesignName = "ab"
    at_us: int | None = None
    """Time of the activation, in microseconds since 1970."""
    every_us: int | None = None
    """Length of a switchback period; None: an hour."""
    unit: str | None = None
    """Column of the records with the units of a switchback, such as `pop`; None: one unit."""

    def __post_init__(self) -> None:
        if (self.name == "before-after") != (self.at_us is not None):
            raise ThalwegError(
                "bad-design",
                "--at is required for --design before-after, and only for it",
                place="--at",
                expected="--design before-after --at 2026-01-31T12:00",
            )
        if self.period_us < SECOND_US:
            raise ThalwegError(
                "bad-design", "a period must last at least one second", place="--every", expected="a time such as 1h"
            )
        every = None if self.every_us is None else period_text(self.every_us)
        for option, value in (("--every", every), ("--turns-of", self.unit)):
            if value is not None and self.name != "switchback":
                raise ThalwegError(
                    "bad-design",
                    f"{option} applies only to a switchback; the design is {self.name}",
                    place=option,
                    expected=f"--design switchback {option} {value}",
                )

    @property
    def period_us(self) -> int:
        """Length of a switchback period."""
        return HOUR_US if self.every_us is None else self.every_us


def period_text(length_us: int) -> str:
    """Return the length of a period as `--every` reads it.

    >>> period_text(2 * HOUR_US), period_text(HOUR_US // 2), period_text(1_500_000)
    ('2h', '30min', '1.5s')
    """
    for unit, size_us in (("h", HOUR_US), ("min", MINUTE_US)):
        if length_us % size_us == 0:
            return f"{length_us // size_us}{unit}"
    return f"{length_us / SECOND_US:.15g}s"


@dataclass(frozen=True)
class Question:
    """All inputs of an answer, except the records and the table of networks.

    Raises:
        ThalwegError: If the arms are the same, a dimension is named twice, or the cluster does not fit the design.
    """

    treatment: str = "bbr"
    control: str = "cubic"
    design: Design = field(default_factory=Design)
    segments: tuple[str, ...] = DEFAULT_SEGMENTS
    """Dimensions: names of `segments.KNOWN`, or columns of the records or of the user's table of networks."""
    cluster: ClusterName | None = None
    """Cluster; None: it depends on the design and the parts, as docs/reference/advise.md describes."""
    size_limit_bytes: int = 3_000_000
    """Limit between transfers judged by completion time and by throughput; by default that of a large CDN (Shah 2019).
    """
    least_samples: int = 500
    false_share: float = 0.05
    """Expected fraction of false verdicts among those for an algorithm (Benjamini and Hochberg 1995)."""
    margin: float = 0.05
    """A difference that is not significant counts as zero if its interval lies within this."""
    without_receiver_limited: bool = False
    replicates: int = 1000
    seed: int = 1
    where: Where = ()

    def __post_init__(self) -> None:
        if self.treatment == self.control:
            raise ThalwegError(
                "same-arms",
                f"`{self.treatment}` cannot be compared with itself",
                place="--treatment",
                expected="two algorithms, such as --treatment bbr --control cubic",
            )
        if len(set(self.segments)) != len(self.segments):
            raise ThalwegError("twice", "a dimension is named twice", place="--by", found=", ".join(self.segments))
        if self.cluster == "pair" and self.design.name != "switchback":
            raise ThalwegError(
                "bad-cluster",
                f"pairs of periods exist only in a switchback; the design is {self.design.name}",
                place="--cluster",
                expected=f"--cluster {CLUSTERS[self.design.name]}, or --design switchback",
            )

    @property
    def clusters(self) -> ClusterName:
        """Cluster that the bootstrap resamples as one unit."""
        return self.cluster or CLUSTERS[self.design.name]
