"""All measures with their units, declared once.

A measure has one value per experiment (one point of the sweep, one repetition) and, unless it is of the path, flow.
docs/reference/analysis.md lists the same measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from thalweg.analysis.tables.directions import UP

Unit = Literal["bit/s", "s", "ratio", "count", "1/s"]


@dataclass(frozen=True)
class Measure:
    """Definition of a measure."""

    name: str
    title: str
    unit: Unit
    of: Literal["flow", "path"]
    about: str
    in_window: bool = False
    """Whether it can be computed from the time series, within a window."""
    apps: Sequence[str] = ()
    """Applications whose flows have the measure; empty: every flow."""

    @property
    def is_fraction(self) -> bool:
        """Whether its values are from 0 to 1."""
        return self.name.removesuffix(UP) in _FRACTIONS

    @property
    def is_in_points(self) -> bool:
        """Whether a change is a difference in percentage points; other changes are relative."""
        return self.is_fraction or self.name == "max_min_share"

    @property
    def better(self) -> Literal["more", "less", None]:
        """Whether larger or smaller values are better; None if that depends on the goal."""
        if self.name.removesuffix(UP) in _NEITHER:
            return None
        is_bad = self.unit == "s" or self.name.removesuffix(UP) in _BAD
        return "less" if is_bad else "more"


_FRACTIONS = {
    "copies_jain",
    "jain",
    "retransmit_ratio",
    "share",
    "stall_ratio",
    "utilisation",
    "utilisation_while_active",
}

_BAD = {
    "retransmits",
    "retransmit_ratio",
    "timeouts",
    "drops",
    "jitter",
    "stability",
    "starved",
    "stalls",
    "stall_ratio",
}
"""Measures whose smaller values are better, in addition to times."""

_NEITHER = {"transfers", "connections", "share", "inflight_bdp", "cwnd_mean", "marks", "probe_rtt_sync"}
"""Measures without a better direction, such as `share`: one flow's gain is another's loss."""

APPS = ("video", "web", "call", "rpc", "probe")

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "goodput",
            "Goodput",
            "bit/s",
            "flow",
            "Payload bytes acknowledged, over the time from the start of the first transfer to the end of the"
            " last one, pauses included.",
            in_window=True,
        ),
        Measure(
            "transfer_goodput",
            "Goodput per transfer",
            "bit/s",
            "flow",
            "Mean of the goodputs of the transfers, each over its own time, without sized transfers that the"
            " end of the experiment cut off.",
        ),
        Measure(
            "completion_time",
            "Completion time",
            "s",
            "flow",
            "Mean, over completed transfers, of the time from the start to the last byte acknowledged.",
        ),
        Measure(
            "completion_time_p50",
            "Completion time, median",
            "s",
            "flow",
            "Median of the completion times.",
        ),
        Measure(
            "completion_time_p95",
            "Completion time, 95th percentile",
            "s",
            "flow",
            "95th percentile of the completion times.",
        ),
        Measure(
            "jitter",
            "Jitter of completion times",
            "ratio",
            "flow",
            "Interquartile range of the completion times, over their median; needs at least four.",
        ),
        Measure("transfers", "Transfers", "count", "flow", "Transfers that the flow began."),
        Measure("completed", "Transfers completed", "count", "flow", "Transfers whose bytes were all acknowledged."),
        Measure("connections", "Connections", "count", "flow", "Connections that the flow opened."),
        Measure(
            "starved",
            "Connections without a byte",
            "count",
            "flow",
            "Connections of which no byte was acknowledged, though they lasted for more than two round trips of"
            " the empty path.",
        ),
        Measure(
            "copies_jain",
            "Jain's index of the copies",
            "ratio",
            "flow",
            "Jain's index of the goodputs of the flow's parallel copies: 1 is even, 1/n is all for one; no value for"
            " a single copy.",
        ),
        Measure(
            "retransmit_ratio",
            "Retransmits",
            "ratio",
            "flow",
            "Retransmissions, over all data segments that the flow sent.",
            in_window=True,
        ),
        Measure(
            "retransmits",
            "Retransmitted segments",
            "count",
            "flow",
            "Data segments that were retransmissions.",
            in_window=True,
        ),
        Measure("timeouts", "Retransmission timeouts", "count", "flow", "Retransmission timeouts of the flow."),
        Measure(
            "share",
            "Share of the bytes",
            "ratio",
            "flow",
            "Payload bytes acknowledged, over those of all flows of the experiment in the same direction.",
            in_window=True,
        ),
        Measure(
            "max_min_share",
            "Ratio to the max-min fair share",
            "ratio",
            "flow",
            "Payload bytes acknowledged, over those of the flow's max-min fair share of the path's rate.",
        ),
        Measure(
            "rtt_mean",
            "Round-trip time, mean",
            "s",
            "flow",
            "Mean of the transfers' mean round-trip times, each weighted by the number of segments that it sent.",
            in_window=True,
        ),
        Measure(
            "rtt_min", "Round-trip time, smallest", "s", "flow", "Smallest round-trip time that the flow ever sampled."
        ),
        Measure(
            "rtt_p50",
            "Round-trip time, median",
            "s",
            "flow",
            "Mean of the medians of the transfers' round-trip times, each weighted by the number of segments that it"
            " sent.",
            in_window=True,
        ),
        Measure(
            "rtt_p95",
            "Round-trip time, 95th percentile",
            "s",
            "flow",
            "Mean of the 95th percentiles of the transfers' round-trip times, each weighted by the number"
            " of segments that it sent.",
            in_window=True,
        ),
        Measure(
            "latency_under_load",
            "Latency under load",
            "s",
            "flow",
            "`rtt_p95` minus the round-trip time of the empty path. Empty where that one changes.",
            in_window=True,
        ),
        Measure(
            "stability",
            "Variation of the goodput",
            "ratio",
            "flow",
            "Coefficient of variation (standard deviation over mean) of the flow's goodput over 100 ms after its"
            " start-up; 0 is steady.",
            in_window=True,
        ),
        Measure(
            "convergence_time",
            "Convergence time",
            "s",
            "flow",
            "Time from the last change of the flow's available share, or from its start, until its rate stays within"
            " 10 % of that share for 1 s.",
            in_window=True,
        ),
        Measure(
            "inflight_bdp",
            "In flight, mean",
            "ratio",
            "flow",
            "Mean, over the samples, of the data in flight on all of the flow's connections, in bandwidth-delay"
            " products of the empty path. Empty where its round-trip time changes.",
            in_window=True,
        ),
        Measure(
            "cwnd_mean",
            "Congestion window, mean",
            "count",
            "flow",
            "Mean, over the samples, of a connection's congestion window in full-sized segments.",
            in_window=True,
        ),
        Measure(
            "delivery_rate_max",
            "Delivery rate, largest",
            "bit/s",
            "flow",
            "Largest delivery rate in any sample of the flow's connections.",
            in_window=True,
        ),
        Measure(
            "utilisation_while_active",
            "Utilisation while active",
            "ratio",
            "flow",
            "Bytes that left the queue of the flow's direction, over those that it could have carried, between the"
            " start of the flow's first transfer and the end of its last one. All traffic on the link counts. Empty"
            " with fewer than 10 samples in that time.",
        ),
        Measure(
            "utilisation",
            "Utilisation",
            "ratio",
            "path",
            "Bytes that left the bottleneck's queue, over those that it could have carried, over the whole experiment.",
            in_window=True,
        ),
        Measure(
            "queueing_delay",
            "Queueing delay",
            "s",
            "path",
            "Mean time that a byte waits in the bottleneck's queue: by Little's law, the time integral of the backlog"
            " over the bytes that left the queue. Empty if they left in fewer than 10 intervals between samples.",
            in_window=True,
        ),
        Measure(
            "queueing_delay_p50",
            "Queueing delay, median",
            "s",
            "path",
            "Median, over the samples, of the time until the link could have carried the backlog: the wait of a packet"
            " that arrives at a random moment.",
            in_window=True,
        ),
        Measure(
            "queueing_delay_p95",
            "Queueing delay, 95th percentile",
            "s",
            "path",
            "95th percentile, over the samples, of the time until the link could have carried the backlog.",
            in_window=True,
        ),
        Measure(
            "jain",
            "Jain's index",
            "ratio",
            "path",
            "Jain's index of the goodputs of all parallel copies of all flows that go down, (Σx)² / (n Σx²): 1 is even,"
            " 1/n is all for one.",
            in_window=True,
        ),
        Measure(
            "probe_rtt_sync",
            "Time until ProbeRTT is synchronised",
            "s",
            "path",
            "Time from the start of the last of several BBR connections until, for the first time, all of them are in"
            " ProbeRTT (a window of at most 4 packets) in the same sample; no value if that never happens.",
        ),
        Measure(
            "drops",
            "Packets dropped",
            "count",
            "path",
            "Packets that the bottleneck's queue dropped.",
            in_window=True,
        ),
        Measure(
            "marks",
            "Packets marked",
            "count",
            "path",
            "Packets whose ECN field the bottleneck's queue set to CE.",
            in_window=True,
        ),
    )
}

APP_MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "completion_time_p99",
            "Completion time, 99th percentile",
            "s",
            "flow",
            "99th percentile of the completion times of the application's transfers: messages of `rpc` and `probe`,"
            " frames of `call`, objects of `web`, segments of `video`.",
            apps=APPS,
        ),
        Measure(
            "completion_rate",
            "Transfers completed per second",
            "1/s",
            "flow",
            "Completed transfers of the application, over the time from its first start to its last end.",
            apps=APPS,
        ),
        Measure(
            "video_bitrate",
            "Bitrate of the video, mean",
            "bit/s",
            "flow",
            "Mean bitrate of the video's segments that arrived.",
            apps=("video",),
        ),
        Measure(
            "startup_delay",
            "Startup delay",
            "s",
            "flow",
            "Time from the video's start until its first segment has arrived and playback begins.",
            apps=("video",),
        ),
        Measure(
            "stalls",
            "Stalls",
            "count",
            "flow",
            "Number of times that video playback stalled because the buffer was empty, or that a call froze.",
            apps=("video", "call"),
        ),
        Measure(
            "stall_time",
            "Time stalled",
            "s",
            "flow",
            "Time that video playback or a call was frozen, summed over all stalls and copies.",
            apps=("video", "call"),
        ),
        Measure(
            "stall_ratio",
            "Share of the time stalled",
            "ratio",
            "flow",
            "`stall_time` over the time since the first segment or frame had arrived.",
            apps=("video", "call"),
        ),
        Measure(
            "page_time_half",
            "Page time, half of the objects",
            "s",
            "flow",
            "Mean time until half of the objects of a page had arrived, over the pages of which half arrived.",
            apps=("web",),
        ),
        Measure(
            "page_time",
            "Page time, all objects",
            "s",
            "flow",
            "Mean, over the pages that were loaded completely, of the time until the last object had arrived.",
            apps=("web",),
        ),
    )
}

_BOTH_WAYS = ("utilisation", "queueing_delay", "queueing_delay_p50", "queueing_delay_p95", "drops", "marks", "jain")

UP_MEASURES: dict[str, Measure] = {
    f"{name}{UP}": replace(
        measure,
        name=f"{name}{UP}",
        title=f"{measure.title}, up",
        about=f"`{name}` of path.reverse and of the flows that go up.",
    )
    for name in _BOTH_WAYS
    for measure in (MEASURES[name],)
}

MEASURES |= APP_MEASURES
MEASURES |= UP_MEASURES
