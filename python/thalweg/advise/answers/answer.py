"""An answer: a verdict for every part of the traffic, with its evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from thalweg.advise.counting.arms import CHANGED, CONTRADICTING, SPANNING
from thalweg.advise.counting.segments import Dimension, PartValues
from thalweg.advise.question import Question
from thalweg.advise.statistics.balance import Imbalance, Losses
from thalweg.advise.statistics.effects import Arm, Difference, Effect
from thalweg.advise.statistics.networks import Networks
from thalweg.records.find import LeftOutFile
from thalweg.records.schema import UNKNOWN_TEXT

NO_DIFFERENCE = "no difference"
NOT_ENOUGH = "not enough data"
NOT_COMPARABLE = "not comparable"
"""Verdicts that name no algorithm."""


@dataclass(frozen=True)
class Gain:
    """Gain of the treatment over the control: the fraction of time saved, or of throughput added."""

    value: float
    low: float
    high: float


def gain(metric: str, effect: Effect) -> Gain:
    """Convert an effect into a gain.

    >>> gain("completion_time", Effect(0.75, 0.5, 1.25, 0.3))
    Gain(value=0.25, low=-0.25, high=0.5)
    """
    if metric == "completion_time":
        return Gain(1 - effect.ratio, 1 - effect.high, 1 - effect.low)
    return Gain(effect.ratio - 1, effect.low - 1, effect.high - 1)


def percent(share: float) -> str:
    """Format a share as a whole percentage; a small share is not zero.

    >>> percent(0.123), percent(0.004), percent(0.0)
    ('12%', 'below 1%', '0%')
    """
    return "below 1%" if 0 < share < 0.01 else f"{share:.0%}"


@dataclass(frozen=True)
class Comparison:
    """Comparison of the arms for one metric of one part, with its verdict."""

    metric: str
    difference: Difference | None
    imbalances: Sequence[Imbalance]
    p_adjusted: float | None
    """p-value of the ratio of medians, adjusted for the number of comparisons; None: it was not tested."""
    verdict: str
    """The better algorithm, or one of the verdicts that name none."""
    reason: str
    networks: Networks | None = None
    """Networks behind the comparison; None: it covers one network, or they were not counted."""
    receiver_limited: tuple[float | None, float | None] = (None, None)
    """Receiver-limited fractions of the treatment's and of the control's samples; None: unknown."""

    @property
    def gain(self) -> Gain | None:
        """Gain of the treatment at the median."""
        effect = self.difference.median if self.difference else None
        return gain(self.metric, effect) if effect else None


@dataclass(frozen=True)
class Part:
    """A part of the traffic."""

    names: tuple[str, ...]
    """Its name in each dimension."""
    values: PartValues
    """Its value in each dimension: a text, or the number of a class."""
    comparisons: Mapping[str, Comparison]
    n: int
    """Number of samples of both arms."""
    verdict: str
    reason: str
    losses: Losses | None = None

    @property
    def title(self) -> str:
        """Return its name in one line."""
        return ", ".join(self.names)


@dataclass(frozen=True)
class Caution:
    """Something that a reader must know before trusting the numbers."""

    code: str
    text: str
    parts: tuple[str, ...] = ()
    """Titles of the affected parts; empty: the caution does not concern single parts."""


@dataclass(frozen=True)
class Step:
    """A part that should change to the treatment, and how."""

    part: Part
    share: float
    """Initial fraction of the part's connections."""
    gain: Gain
    metric: str
    traffic: float
    """The part's fraction of all samples."""


@dataclass(frozen=True)
class Age:
    """Difference between the arms in one span of a connection's life."""

    title: str
    treatment: Arm
    control: Arm
    effect: Effect | None


@dataclass(frozen=True)
class Since:
    """Difference between the arms in one span of time since the activation."""

    title: str
    metric: str
    difference: Difference


@dataclass(frozen=True)
class Sized:
    """Completion times of one class of sizes."""

    title: str
    difference: Difference


@dataclass(frozen=True)
class Answer:
    """The complete answer."""

    question: Question
    dimensions: Sequence[Dimension]
    overall: Part
    parts: Sequence[Part]
    """Parts with enough samples of both arms, the largest first; without dimensions, the total."""
    too_small: int
    """Number of parts with fewer samples."""
    too_small_n: int
    """Number of samples in these parts."""
    map: Sequence[Part]
    """Parts by class of round-trip time and of retransmissions."""
    sizes: Sequence[Sized]
    ages: Sequence[Age]
    since: Sequence[Since]
    """Differences by time since the activation; empty if the samples cover only one span of it."""
    over_time: pl.DataFrame
    """Columns start_us, metric, arm, n, median."""
    step_us: int
    cautions: Sequence[Caution]
    rollout: Sequence[Step]
    files: int
    left_out: Sequence[LeftOutFile]
    rows: int
    untouched: int
    """Rows that are excluded because their `assignment` is `untouched`."""
    other_algorithms: Mapping[str, int]
    """Closed connections and transfers with neither algorithm, by algorithm."""
    receiver_limited: int
    """Rows that are excluded because receivers limited them; 0 unless the question excludes them."""
    without_arm: Mapping[str, int]
    """Rows of the compared algorithms that belong to no arm, by reason."""
    n: int
    first_us: int
    last_us: int
    engine: str
    headline: str = field(default="")

    @property
    def has_evidence(self) -> bool:
        """Whether the algorithms could be compared in any part."""
        return any(comparison.p_adjusted is not None for part in self.parts for comparison in part.comparisons.values())

    @property
    def not_compared(self) -> list[tuple[int, str]]:
        """Numbers of rows that were not compared, with descriptions; without the `untouched` ones."""
        treatment, control = self.question.treatment, self.question.control
        is_switchback = self.question.design.name == "switchback"
        which = {
            CHANGED: "of connections that changed their algorithm",
            CONTRADICTING: f"of {treatment} that began before --at, or of {control} that began after it",
            SPANNING: "that began and ended in different periods"
            if is_switchback
            else f"of {control} that began before --at and ended after it",
        }
        counts = [
            *((n, "without cc" if cc == UNKNOWN_TEXT else f"of {cc}") for cc, n in self.other_algorithms.items()),
            *((n, which[reason]) for reason, n in self.without_arm.items()),
            (self.receiver_limited, "limited by the receiver"),
        ]
        return [(n, rows) for n, rows in counts if n]
