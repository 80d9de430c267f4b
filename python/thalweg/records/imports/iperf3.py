"""The output of `iperf3 -J` and `iperf3 --json-stream`: each stream of a test is a closed connection.

The local end of a row is always the sender, whichever side printed the output. The RTTs are the minimum and the mean of
the kernel's smoothed RTT, which iperf3 samples once per interval and only at the sender.
"""

from collections.abc import Iterator
from hashlib import blake2b

from pydantic import JsonValue

from thalweg.records.imports import values
from thalweg.records.imports.addresses import ends
from thalweg.records.imports.items import ImportedRow, Item, SourceFile, Unknown, Unread, item
from thalweg.records.imports.json_lines import decoder
from thalweg.records.imports.json_values import JsonObject, values_of_json
from thalweg.records.schema import CLOSE

TWO_ALGORITHMS = "the two ends of a test with --bidir used different algorithms"


class Iperf3:
    """Importer of iperf3 results over TCP."""

    source = "iperf3"
    shows_cuts = True
    fills = (
        "end_us", "connection", "kind", "source", "start_us", "duration_us", "ip_version", "local_address",
        "local_port", "remote_address", "remote_port", "direction", "cc", "sent_bytes", "acked_bytes", "retransmits",
        "rtt_min_us", "rtt_smoothed_us", "busy_goodput_bps",
    )  # fmt: skip
    expected = "the output of iperf3 -J or iperf3 --json-stream"
    hint = "iperf3 -c SERVER -J > test.json"

    def read(self, source: SourceFile) -> Iterator[Item]:
        """Parse the tests in a file."""
        open_test: tuple[int, JsonObject] | None = None
        for line, value in values_of_json(1, iter(source.text.piece, ""), decoder()):
            if isinstance(value, Item):
                yield value
            elif not isinstance(value, dict):
                yield Item(line, unread=Unread("not a result of iperf3"))
            elif "event" not in value:
                yield from _test(source.number(line), line, value)
            elif value["event"] == "start":
                open_test = line, _object(value, "data")
            elif value["event"] == "error":
                yield Item(line, unread=_error(value.get("data")))
                open_test = None
            elif value["event"] == "end" and open_test is not None:
                number, start = open_test
                yield from _test(source.number(number), number, {"start": start, "end": _object(value, "data")})
                open_test = None
        if open_test is not None:
            yield Item(open_test[0], unread=Unread("a test without an end"))


def _test(number: int, line: int, test: JsonObject) -> Iterator[Item]:
    if "error" in test:
        yield Item(line, unread=_error(test["error"]))
        return
    start, end = _object(test, "start"), _object(test, "end")
    protocol = _object(start, "test_start").get("protocol", "TCP")
    streams = end.get("streams")
    if protocol != "TCP":
        yield Item(line, left_out="tests of other protocols than TCP")
    elif not isinstance(streams, list) or not streams:
        yield Item(line, unread=Unread("a test without streams at its end"))
    else:
        for index, stream in enumerate(streams):
            yield item(line, _row, f"{number} {index}", start, end, stream)


def _row(name: str, start: JsonObject, end: JsonObject, stream: JsonValue) -> ImportedRow:
    if not isinstance(stream, dict) or not isinstance(stream.get("sender"), dict):
        raise Unread("a stream without its sender")
    sender, receiver, settings = _object(stream, "sender"), _object(stream, "receiver"), _object(start, "test_start")
    is_client = "connecting_to" in start
    is_sender = _is_sender(sender, settings, is_client)
    began, seconds = _number(_object(start, "timestamp"), "timesecs"), _number(sender, "seconds")
    if began is None or seconds is None:
        raise Unread("a test without a time")
    start_us = round((began + (_number(settings, "omit") or 0)) * 1_000_000)
    # iperf3 prints 0 for the other side's bytes until that side has reported them.
    sent, acked = _count(sender, "bytes") or None, _count(receiver, "bytes") or None
    # Without a configured rate, the sender is not application-limited.
    is_busy = _number(settings, "target_bitrate") == 0 and not _number(settings, "fqrate")
    ends_of = _ends(start, _text(sender.get("socket")), is_sender)
    cookie = start.get("cookie")
    connection_key = f"{cookie} {sorted(ends_of[1])}" if cookie and ends_of[1] else name
    return {
        "start_us": start_us,
        "end_us": start_us + round(seconds * 1_000_000),
        "connection": int.from_bytes(blake2b(connection_key.encode(errors="replace"), digest_size=8).digest()),
        "kind": CLOSE,
        **ends_of[0],
        "direction": "out" if is_client == is_sender else "in",
        "cc": _cc(end, settings, is_sender),
        "sent_bytes": sent,
        "acked_bytes": acked,
        "retransmits": None if str(sender.get("retransmits")).startswith("-") else _count(sender, "retransmits"),
        "rtt_min_us": (_count(sender, "min_rtt") or None) if is_sender else None,
        "rtt_smoothed_us": (_count(sender, "mean_rtt") or None) if is_sender else None,
        "busy_goodput_bps": _number(receiver, "bits_per_second") if is_busy and acked else None,
    }


def _is_sender(sender: JsonObject, settings: JsonObject, is_client: bool) -> bool:
    """Return whether the side that printed the result sent the stream; old versions report this only for the entire
    test.

    Raises:
        Unread: If the test had streams in both directions, and the stream does not report its own.
    """
    if isinstance(flag := sender.get("sender"), bool):
        return flag
    if _number(settings, "bidir"):
        raise Unread("a stream of a test with --bidir, whose direction is unknown")
    return is_client != bool(_number(settings, "reverse"))


def _ends(start: JsonObject, socket: str, is_sender: bool) -> tuple[ImportedRow, list[str]]:
    """Return the columns of both ends, the sender being local, and both ends as texts; empty if unknown."""
    connected = start.get("connected")
    entries = [entry_ for entry_ in connected if isinstance(entry_, dict)] if isinstance(connected, list) else []
    entry = next((entry_ for entry_ in entries if socket and _text(entry_.get("socket")) == socket), None)
    if entry is None:
        return {}, []
    local_end = _text(entry.get("local_host")), _text(entry.get("local_port"))
    remote_end = _text(entry.get("remote_host")), _text(entry.get("remote_port"))
    local, remote = (local_end, remote_end) if is_sender else (remote_end, local_end)
    return {**ends("local", *local), **ends("remote", *remote)}, [" ".join(local), " ".join(remote)]


def _cc(end: JsonObject, settings: JsonObject, is_sender: bool) -> str | Unknown | None:
    """Return the sender's algorithm; with --bidir, which has two senders, only an algorithm that both used."""
    sender, receiver = end.get("sender_tcp_congestion"), end.get("receiver_tcp_congestion")
    if _number(settings, "bidir") and sender != receiver:
        return Unknown(TWO_ALGORITHMS)
    return sender if isinstance(sender, str) else None


def _error(text: JsonValue) -> Unread:
    return Unread("the test ended with an error", f"`{text}`")


def _object(value: JsonObject, key: str) -> JsonObject:
    member = value.get(key)
    return member if isinstance(member, dict) else {}


def _text(value: JsonValue) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)


def _number(value: JsonObject, key: str) -> float | None:
    return values.number(_text(value.get(key)))


def _count(value: JsonObject, key: str) -> int | None:
    return values.count(_text(value.get(key)))
