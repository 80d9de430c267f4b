"""nginx's access logs: a line per request, which becomes a transfer.

nginx looks at its clock when the last byte is in the socket's send buffer, not when the client has it, and it waits for
its upstream meanwhile. So $request_time is the row's duration and never a completion time. RTT and window are those of
the moment in which the line was written.
"""

from collections.abc import Iterator
from typing import Any

from thalweg.records.imports import values
from thalweg.records.imports.addresses import parsed
from thalweg.records.imports.items import Item, Source, Unread
from thalweg.records.imports.nginx_config import COMBINED, line_form
from thalweg.records.schema import TRANSFER

TIMES = ("msec", "time_iso8601", "time_local")
"""Variables that say when the line was written, the most exact one first."""


class Nginx:
    """Access logs of one format."""

    source = "nginx"
    fills = (
        "end_us", "connection", "kind", "transfer", "source", "machine", "start_us", "duration_us", "ip_version",
        "local_address", "local_port", "remote_address", "remote_port", "direction", "sent_bytes", "received_bytes",
        "rtt_smoothed_us",
    )  # fmt: skip
    """Columns that it can fill."""

    def __init__(self, form: str = COMBINED) -> None:
        """Take what `log_format` has in nginx.conf.

        Raises `ThalwegError` if it is no format.
        """
        self._form = line_form(form)
        self._text = form
        self._time = next((name for name in TIMES if name in self._form.names), None)

    @property
    def expected(self) -> str:
        """What a line should be."""
        return f"lines of the format {self._text}"

    @property
    def hint(self) -> str:
        """What to type when nothing could be read."""
        return "name the format: --format-string '...' as log_format has it, or --config /etc/nginx/nginx.conf"

    def read(self, source: Source) -> Iterator[Item]:
        """Read a log."""
        return source.items(self._row)

    def _row(self, number: int, line: str) -> dict[str, Any]:
        found = self._form.read(line)
        if self._time is None:
            raise Unread("its format has no time: none of $msec, $time_iso8601 and $time_local")
        serial, request = found.get("connection", "-"), found.get("connection_requests", "-")
        connection, requests = values.count(serial), values.count(request)
        return {
            "end_us": values.instant(found[self._time]),
            "connection": number if connection is None else connection,
            "kind": TRANSFER,
            "transfer": 0 if connection is None else None if requests is None else max(0, requests - 1),
            "machine": _text(found.get("hostname")),
            "duration_us": values.count(found.get("request_time", "-"), 1e6),
            "local_address": parsed(found.get("server_addr", "-")),
            "local_port": values.count(found.get("server_port", "-")),
            "remote_address": parsed(found.get("remote_addr", "-")),
            "remote_port": values.count(found.get("remote_port", "-")),
            "direction": "in",
            "sent_bytes": values.count(found.get("bytes_sent", found.get("body_bytes_sent", "-"))),
            "received_bytes": values.count(found.get("request_length", "-")),
            # The kernel's average is 0 as long as it has no sample.
            "rtt_smoothed_us": values.count(found.get("tcpinfo_rtt", "-")) or None,
        }


def _text(value: str | None) -> str | None:
    return None if value in (None, *values.NOTHING) else value
