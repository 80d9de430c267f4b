"""Output of `thalweg shell` after the command has exited."""

from pathlib import Path

from thalweg.cli.printing import output
from thalweg.run import Connection, Ended

MAX_ROWS = 30

HEADINGS = (
    "protocol",
    "from",
    "to",
    "cc",
    "time s",
    "data kB",
    "rate Mbps",
    "retransmits",
    "lost",
    "RTT ms",
    "delay ms",
)


def show(ended: Ended, directory: Path, report: Path | None) -> None:
    """Print the connections and the paths to standard error, because standard output belongs to the command."""
    if ended.connections:
        # The largest come first, so that a long list shows which connections filled the path.
        largest = sorted(ended.connections, key=lambda connection: -connection.bytes)
        output.talk(output.table(HEADINGS, [_row(connection) for connection in largest[:MAX_ROWS]]))
    if len(ended.connections) > MAX_ROWS:
        output.talk(f"{len(ended.connections) - MAX_ROWS} more connections are in the table flows")
    for reason in ended.doubts:
        output.talk(f"untrustworthy: {reason}")
    output.talk(f"run     {directory}")
    if report:
        output.talk(f"report  {report}")


def _row(connection: Connection) -> list[str]:
    rate = connection.bytes * 8 / connection.seconds / 1e6 if connection.seconds else None
    return [
        connection.protocol,
        connection.source,
        connection.target,
        connection.cc or "-",
        f"{connection.seconds:.2f}",
        f"{connection.bytes / 1e3:.0f}",
        _number(rate, 2),
        "-" if connection.retransmits is None else str(connection.retransmits),
        str(connection.lost_packets),
        _milliseconds(connection.rtt_us),
        _milliseconds(connection.delay_us),
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _milliseconds(microseconds: float | None) -> str:
    return _number(None if microseconds is None else microseconds / 1e3, 1)
