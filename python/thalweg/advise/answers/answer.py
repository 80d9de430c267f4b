"""An answer: a verdict for every part of the traffic, with its evidence and cautions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from thalweg.advise.counting.segments import Dimension, PartValues
from thalweg.advise.question import Question
from thalweg.advise.statistics.balance import Imbalance, Losses
from thalweg.advise.statistics.effects import Arm, Difference, Effect
from thalweg.advise.statistics.networks import Networks
from thalweg.records.find import LeftOutFile

NO_DIFFERENCE = "no difference"
NOT_ENOUGH = "not enough data"
NOT_COMPARABLE = "not comparable"
"""Verdicts that name no algorithm."""


@dataclass(frozen=True)
class Gain:
    """Gain of the treatment over the control, as a share: of time saved, or of throughput added. Negative: a loss."""

    value: float
    low: float
    high: float


def gain(metric: str, effect: Effect) -> Gain:
    """Turn an effect into a gain.

    >>> gain("completion_time", Effect(0.75, 0.5, 1.25, 0.3))
    Gain(value=0.25, low=-0.25, high=0.5)
    """
    if metric == "completion_time":
        return Gain(1 - effect.ratio, 1 - effect.high, 1 - effect.low)
    return Gain(effect.ratio - 1, effect.low - 1, effect.high - 1)


@dataclass(frozen=True)
class Comparison:
    """One metric of one part, judged."""

    metric: str
    difference: Difference | None
    imbalances: Sequence[Imbalance]
    p_adjusted: float | None
    """p-value of the ratio of medians, adjusted for the number of comparisons; None: it was not tested."""
    verdict: str
    """The better algorithm, or one of the verdicts that name none."""
    reason: str
    networks: Networks | None = None
    """The networks that it rests on; None: it lies within one network, or networks were not counted."""
    receiver_limited: tuple[float | None, float | None] = (None, None)
    """Share of the treatment's and of the control's samples that their receivers limited; None: not known."""

    @property
    def gain(self) -> Gain | None:
        """Gain of the median."""
        effect = self.difference.median if self.difference else None
        return gain(self.metric, effect) if effect else None


@dataclass(frozen=True)
class Part:
    """A part of the traffic."""

    names: tuple[str, ...]
    """Its name in each dimension."""
    values: PartValues
    """The same as texts or numbers of classes."""
    comparisons: Mapping[str, Comparison]
    """By metric."""
    n: int
    """Samples of both arms."""
    verdict: str
    reason: str
    losses: Losses | None = None

    @property
    def title(self) -> str:
        """Name it in one line."""
        return ", ".join(self.names)


@dataclass(frozen=True)
class Caution:
    """Something that a reader must know before trusting the numbers."""

    code: str
    text: str
    parts: tuple[str, ...] = ()
    """Titles of the parts that it is about; none: all."""


@dataclass(frozen=True)
class Step:
    """A part that should change to the treatment, and how."""

    part: Part
    share: float
    """Initial share of its connections."""
    gain: Gain
    metric: str
    traffic: float
    """Its share of all samples."""


@dataclass(frozen=True)
class Age:
    """Difference of the arms in one span of a connection's life."""

    title: str
    treatment: Arm
    control: Arm
    effect: Effect | None


@dataclass(frozen=True)
class Since:
    """Difference of the arms in one span of time since the activation."""

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
    """Those with enough samples for a verdict, the largest first."""
    too_small: int
    """Parts with fewer."""
    too_small_n: int
    """Their samples."""
    map: Sequence[Part]
    """By class of round-trip time and of retransmissions."""
    sizes: Sequence[Sized]
    ages: Sequence[Age]
    since: Sequence[Since]
    """By time since the activation; empty: the records cover one day."""
    over_time: pl.DataFrame
    """Columns start_us, metric, arm, n, median: each step of time."""
    step_us: int
    cautions: Sequence[Caution]
    rollout: Sequence[Step]
    files: int
    left_out: Sequence[LeftOutFile]
    rows: int
    untouched: int
    """Rows that are left out because an application, a route or the administrator chose the algorithm."""
    other_algorithms: Mapping[str, int]
    """Rows of closed connections and transfers with neither algorithm, by the algorithm."""
    receiver_limited: int
    """Rows that are excluded because their receivers limited them; 0 unless requested."""
    n: int
    """Samples that were compared."""
    first_us: int
    last_us: int
    engine: str
    headline: str = field(default="")
