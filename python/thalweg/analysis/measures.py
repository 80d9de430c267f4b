"""What is measured: every measure with its unit, declared once.

A measure has one value per experiment (one point of the sweep, one repetition); `thalweg.analysis.summary` turns the
repetitions' values into a mean with its uncertainty. docs/reference/analysis.md tells the same to users, and a test
compares the two.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["bit/s", "s", "ratio", "count"]


@dataclass(frozen=True)
class Measure:
    """One measure."""

    name: str
    title: str
    """Name for headings."""
    unit: Unit
    of: Literal["flow", "path"]
    """Whether each flow has a value, or the path has one."""
    about: str


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "goodput",
            "Goodput",
            "bit/s",
            "flow",
            "Payload bytes acknowledged on all connections of the flow, over the time from the start of its first"
            " transfer to the end of its last one; pauses between transfers count.",
        ),
        Measure(
            "transfer_goodput",
            "Goodput per transfer",
            "bit/s",
            "flow",
            "Mean of the goodputs of the flow's transfers, each over its own time; transfers that were cut off by the"
            " end of the experiment are left out, unlimited ones are not.",
        ),
        Measure(
            "completion_time",
            "Completion time",
            "s",
            "flow",
            "Mean, over the flow's completed transfers, of the time from the start to the last byte acknowledged.",
        ),
        Measure(
            "completion_time_p50",
            "Completion time, median",
            "s",
            "flow",
            "Median of the completion times of the flow's completed transfers.",
        ),
        Measure(
            "completion_time_p95",
            "Completion time, 95th percentile",
            "s",
            "flow",
            "95th percentile of the completion times of the flow's completed transfers.",
        ),
        Measure("transfers", "Transfers", "count", "flow", "Transfers that the flow began."),
        Measure("completed", "Transfers completed", "count", "flow", "Transfers of which every byte was acknowledged."),
        Measure(
            "retransmit_ratio",
            "Retransmits",
            "ratio",
            "flow",
            "Data segments that were retransmissions, over all data segments that the flow sent.",
        ),
        Measure("retransmits", "Retransmitted segments", "count", "flow", "Data segments that were retransmissions."),
        Measure("timeouts", "Retransmission timeouts", "count", "flow", "Retransmission timeouts of the flow."),
        Measure(
            "share",
            "Share of the bytes",
            "ratio",
            "flow",
            "Payload bytes acknowledged for the flow, over those of all flows of the experiment.",
        ),
        Measure(
            "rtt_mean",
            "Round-trip time, mean",
            "s",
            "flow",
            "Mean of the transfers' mean round-trip times, each weighted with the segments that it sent.",
        ),
        Measure(
            "rtt_min", "Round-trip time, smallest", "s", "flow", "Smallest round-trip time that the flow ever sampled."
        ),
        Measure(
            "utilisation_while_active",
            "Utilisation while active",
            "ratio",
            "flow",
            "Bytes that left the bottleneck's queue, over those that it could have carried, between the start of the"
            " flow's first transfer and the end of its last one. Everything that shares the link counts.",
        ),
        Measure(
            "utilisation",
            "Utilisation",
            "ratio",
            "path",
            "Bytes that left the bottleneck's queue, over those that it could have carried, over the whole experiment.",
        ),
        Measure(
            "queueing_delay",
            "Queueing delay",
            "s",
            "path",
            "Mean time that a byte waits in the bottleneck's queue: by Little's law, the time integral of the backlog"
            " over the bytes that left the queue.",
        ),
        Measure("drops", "Packets dropped", "count", "path", "Packets that found no room in the bottleneck's queue."),
    )
}
