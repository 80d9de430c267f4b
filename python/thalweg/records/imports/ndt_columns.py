"""Converts NDT rows without a time series to columns, many at a time; `ndt` defines the meaning of a row."""

import json
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b

import polars as pl

from thalweg.records.imports.addresses import MAX_PORT, Addresses, ends
from thalweg.records.imports.json_values import NO_JSON, JsonObject
from thalweg.records.imports.vectorized import CERTAIN, WHY, Ends, Instants, Texts, round_amounts
from thalweg.records.schema import CLOSE

KEYS_OF_OTHERS = frozenset(
    ("raw", "Download", "Upload", "UUID", "TestTime", "CongestionControl", "MeanThroughputMbps", "MinRTT", "ServerIP",
     "ServerPort", "ClientIP", "ClientPort")
)  # fmt: skip
"""Keys of rows that are parsed one by one: with a time series, or with a flat summary."""
FIELDS = {
    "uuid": pl.String(), "time": pl.String(), "cc": pl.String(), "throughput": pl.Float64(), "rtt": pl.Float64(),
    "client": pl.String(), "remote_port": pl.Int64(), "server": pl.String(), "local_port": pl.Int64(),
    "machine": pl.String(),
}  # fmt: skip
Fields = tuple[str | float | None, ...]
UNUSUAL: Fields = (None,) * len(FIELDS)
"""Marks a row with a different structure."""
NO_PORT = -1
TEXTS = (str, type(None))
START_IS_END = "the start of the test: the row has no other time"


def columns(addresses: Addresses, numbers: pl.Series, lines: Sequence[str]) -> pl.DataFrame:
    """Return the columns of the lines."""
    rows = [_fields(line) for line in lines]
    frame = pl.DataFrame(rows, schema=FIELDS, orient="row", strict=False)
    connections = [
        int.from_bytes(blake2b(str(fields[0]).encode(errors="replace"), digest_size=8).digest()) for fields in rows
    ]
    is_certain = frame["uuid"].is_not_null() & frame["throughput"].is_finite().fill_null(False)
    is_certain &= frame["rtt"].is_finite().fill_null(True)
    rtt_us, is_sure = round_amounts(frame["rtt"] * 1e3)
    is_certain &= is_sure
    end = partial(ends, "local"), partial(ends, "remote")
    converted: dict[str, pl.Series] = {}
    for conversion, name in (
        (Ends("local_address", addresses, end[0]), "server"),
        (Ends("remote_address", addresses, end[1]), "client"),
        (Instants("end_us"), "time"),
        (Texts("cc"), "cc"),
        (Texts("machine"), "machine"),
    ):
        columns, is_sure_of_it = conversion.convert(frame[name])
        converted |= columns
        is_certain &= True if is_sure_of_it is None else is_sure_of_it
    # The time is marked as assumed in any case, with or without a time zone.
    converted.pop(f"end_us{WHY}", None)
    return pl.DataFrame(converted | {CERTAIN: is_certain}).with_columns(
        frame["remote_port"],
        frame["local_port"],
        (frame["throughput"] * 1e6).alias("busy_goodput_bps"),
        rtt_us.alias("rtt_min_us"),
        pl.Series("connection", connections, dtype=pl.UInt64),
        pl.lit(START_IS_END).alias(f"end_us{WHY}"),
        kind=pl.lit(CLOSE),
        direction=pl.lit("in"),
    )


def _fields(line: str) -> Fields:
    """Return the values of `FIELDS` in a row; `UNUSUAL` for a different structure or values of other types."""
    if "\\" in line and "\\ud" in line.lower():
        # JSON can encode lone surrogates, which columns cannot contain.
        return UNUSUAL
    try:
        row = json.loads(line)
    except NO_JSON:
        return UNUSUAL
    if type(row) is not dict or not KEYS_OF_OTHERS.isdisjoint(row):
        return UNUSUAL
    test, client, server = row.get("a"), row.get("client", {}), row.get("server", {})
    if not (type(test) is dict and type(client) is dict and type(server) is dict):
        return UNUSUAL
    uuid, time = test.get("UUID"), test.get("TestTime")
    throughput, rtt = test.get("MeanThroughputMbps"), test.get("MinRTT")
    cc, site, machine = test.get("CongestionControl"), server.get("Site"), server.get("Machine")
    address, own_address = client.get("IP"), server.get("IP")
    has_types = (
        type(uuid) is str and type(time) is str and type(throughput) is float and (rtt is None or type(rtt) is float)
        and type(cc) in TEXTS and type(site) in TEXTS and type(machine) in TEXTS
        and type(address) in TEXTS and type(own_address) in TEXTS
    )  # fmt: skip
    port, own_port = _port(client), _port(server)
    if not (has_types and uuid and time) or NO_PORT in (port, own_port):
        return UNUSUAL
    name = f"{machine}-{site}" if site and machine else machine or site
    return uuid, time, cc or None, throughput, rtt, address or None, port, own_address or None, own_port, name or None


def _port(end: JsonObject) -> int | None:
    """Return a port; `NO_PORT` if the value is not a valid one."""
    port = end.get("Port")
    if isinstance(port, str) and port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT)):
        port = int(port)
    return port if port is None or (type(port) is int and 0 <= port <= MAX_PORT) else NO_PORT
