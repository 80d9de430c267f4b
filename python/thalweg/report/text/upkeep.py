"""Measurements of engines about themselves, as text with units."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg import analysis
from thalweg.analysis import OwnMeasure
from thalweg.report.content import LabelledRun
from thalweg.report.text.numbers import NARROW

KNOWN = {
    "relay_lateness_p50_us": "Lateness of packets at the relay, median",
    "relay_lateness_p99_us": "Lateness of packets at the relay, 99th percentile",
    "relay_lateness_p999_us": "Lateness of packets at the relay, 99.9th percentile",
    "relay_lateness_worst_us": "Lateness of packets at the relay, worst",
    "relay_dropped_packets": "Packets that the kernel dropped around the relay",
    "relay_capture_lost_packets": "Packets that the capture missed",
    "relay_cpu_percent": "CPU usage of the relay",
    "relay_is_realtime": "Whether the relay had SCHED_FIFO (1: yes)",
    "relay_packets": "Packets that the relay forwarded",
    "qdisc_change_lateness_worst_us": "Lateness of changes of the path, worst",
    "qdisc_sampling_cpu_percent": "CPU usage of reading queue disciplines",
    "start_lateness_p99_us": "Lateness of connections' starts, 99th percentile",
    "start_lateness_max_us": "Lateness of connections' starts, worst",
    "background_lateness_p99_us": "Lateness of background packets, 99th percentile",
    "background_late_packets": "Background packets that were too late to be sent",
    "background_sent_packets": "Background packets sent",
    "sampling_cpu_percent": "CPU usage of sampling",
    "sampling_interval_p99_us": "Time between two samples, 99th percentile",
    "samples_late": "Samples that were missed",
    "samples_taken": "Samples taken",
    "connections_opened": "Connections opened",
    "connections_failed": "Connections that could not be opened",
    "host_qdisc_sent_packets": "Packets that senders' queue disciplines passed",
    "host_qdisc_dropped_packets": "Packets that senders' queue disciplines dropped",
    "guest_boot_us": "Time until a guest was ready",
    "guest_clock_uncertainty_us": "Uncertainty of a guest's clock",
    "guest_clock_drift_ppm": "How much faster a guest's clock runs",
    "ack_stamps_missing": "Completions without a kernel timestamp",
    "received_connections": "Connections that the receiver accepted",
    "received_bytes": "Payload received, TCP and UDP",
    "received_datagrams": "UDP packets received",
}
"""Descriptions of engines' measurements, in display order; other measurements follow unchanged."""

UNITS = {"us": "µs", "percent": "%", "bytes": "bytes", "ppm": "ppm"}
"""Units by the last word of a name; other measurements are counts."""


@dataclass(frozen=True)
class UpkeepLine:
    """One measurement of one run."""

    run: str
    """Label of the run; empty except in its first line."""
    title: str
    name: str
    n: int
    median: str
    largest: str


def lines(runs: Sequence[LabelledRun]) -> list[UpkeepLine]:
    """Return a line per run and measurement, except CPU shares of hosts, which differ between points."""
    listed = []
    for labelled in runs:
        measures = [measure for measure in analysis.measured(labelled.run) if not analysis.is_of_a_share(measure.name)]
        for number, measure in enumerate(sorted(measures, key=_place)):
            title = KNOWN.get(measure.name, measure.name)
            median, largest = (_value(measure, value) for value in (measure.median, measure.largest))
            listed.append(UpkeepLine("" if number else labelled.label, title, measure.name, measure.n, median, largest))
    return listed


def _place(measure: OwnMeasure) -> int:
    return list(KNOWN).index(measure.name) if measure.name in KNOWN else len(KNOWN)


def _value(measure: OwnMeasure, value: float) -> str:
    """Format a value; an unlisted measurement has its unit in its name."""
    text = f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    unit = UNITS.get(measure.name.rpartition("_")[2], "") if measure.name in KNOWN else ""
    return f"{text}{NARROW}{unit}" if unit else text
