"""Synthetic logs for the import benchmark: realistic lines from a seed; about one row in a thousand is malformed."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

START_S = 1_795_304_248
"""UNIX time before the first row: 2026-11-21 23:37:28 UTC."""
MALFORMED_SHARE = 0.001
BLOCK = 5_000
"""Approximate number of lines that are written together."""

NGINX = (
    "$remote_addr $remote_port $server_addr $server_port $hostname $msec [$time_local] "
    '"$request" $status $bytes_sent $request_length $request_time $connection $connection_requests '
    '$tcpinfo_rtt "$http_referer" "$http_user_agent"'
)
VARNISH = (
    "%h %{VSL:ReqStart[2]}x %{VSL:Timestamp:Start[1]}x %{VSL:Timestamp:Resp[1]}x "
    '"%r" %s %O %I %{VCL_Log:tcpi}x %{VCL_Log:tcpi2}x'
)
CSV_MAP = (
    "end_us=finished", "remote_address=client", "cc=algorithm", "acked_bytes=size_kB:kB", "fct_us=time_ms:ms",
    "rtt_min_us=min_rtt_ms:ms", "retransmits=lost",
)  # fmt: skip

AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "curl/8.5.0",
    "-",
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Traffic:
    """Random clients, sizes and times."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.at_s = float(START_S)

    def client(self) -> str:
        """Return a client's address: one network in eight is IPv6, and few networks send most requests."""
        network = int(self.random.paretovariate(0.3)) % 40_000
        if network % 8 == 7:
            return f"2001:db8:{network:x}:{self.random.randrange(256):x}::{self.random.randrange(1, 65_536):x}"
        return f"{100 + network % 100}.{network // 100 % 256}.{network // 25_600}.{self.random.randrange(256)}"

    def port(self) -> int:
        return self.random.randrange(1024, 65_536)

    def size(self) -> int:
        """Return a number of bytes, with a heavy tail."""
        return int(400 * self.random.paretovariate(0.9)) % 4_000_000_000

    def rtt_us(self) -> int:
        return int(self.random.lognormvariate(10.2, 0.8))

    def tick(self) -> float:
        """Return the next UNIX time in seconds, on average 5 ms after the previous one."""
        self.at_s += self.random.expovariate(200)
        return self.at_s

    def path(self) -> str:
        return f"/assets/{self.random.randrange(5_000):05d}/{self.random.choice(('app.js', 'a.css', 'video.mp4'))}"


def _nginx(traffic: _Traffic) -> str:
    at_s = traffic.tick()
    at = datetime.fromtimestamp(int(at_s), UTC)
    local = f"{at.day:02d}/{MONTHS[at.month - 1]}/{at.year}:{at:%H:%M:%S} +0000"
    took_s = traffic.random.expovariate(5)
    return (
        f"{traffic.client()} {traffic.port()} 192.0.2.1 443 web{traffic.random.randrange(4)} {at_s:.3f} [{local}] "
        f'"GET {traffic.path()}?id={traffic.random.randrange(10**6)} HTTP/2.0" 200 {traffic.size()} '
        f"{traffic.random.randrange(200, 900)} {took_s:.3f} {traffic.random.randrange(10**7)} "
        f'{traffic.random.randrange(1, 60)} {traffic.rtt_us()} "https://example.org/" '
        f'"{traffic.random.choice(AGENTS)}"\n'
    )


def _varnish(traffic: _Traffic) -> str:
    at_s = traffic.tick()
    took_s = traffic.random.expovariate(5)
    return (
        f"{traffic.client()} {traffic.port()} {at_s:.6f} {at_s + took_s:.6f} "
        f'"GET http://example.org{traffic.path()} HTTP/1.1" 200 {traffic.size()} {traffic.random.randrange(200, 900)} '
        f"snd_mss=1448 rcv_mss=536 lost=0 retrans=0 pmtu=1500 "
        f"rtt={traffic.rtt_us()} rttvar=5000 snd_cwnd={traffic.random.randrange(10, 90)} advmss=1448 reordering=3\n"
    )


def _csv(traffic: _Traffic) -> str:
    at = datetime.fromtimestamp(traffic.tick(), UTC)
    return (
        f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z,{traffic.client()},"
        f"{traffic.random.choice(('cubic', 'bbr', 'reno'))},{traffic.size() // 1000},"
        f"{traffic.random.randrange(1, 10_000)},{traffic.rtt_us() / 1000:.2f},{traffic.random.randrange(20)},yes\n"
    )


def _ndt(traffic: _Traffic) -> str:
    at = datetime.fromtimestamp(traffic.tick(), UTC)
    uuid = f"ndt-abcde_1795300000_{traffic.random.randrange(2**48):016X}"
    row = {
        "id": uuid,
        "date": f"{at:%Y-%m-%d}",
        "a": {
            "UUID": uuid,
            "TestTime": f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
            "CongestionControl": traffic.random.choice(("bbr", "cubic")),
            "MeanThroughputMbps": traffic.random.lognormvariate(3, 1),
            "MinRTT": traffic.rtt_us() / 1000,
            "LossRate": traffic.random.random() / 100,
        },
        "client": {
            "IP": traffic.client(), "Port": traffic.port(),
            "Geo": {"ContinentCode": "EU", "CountryCode": "NL", "City": "Amsterdam", "Latitude": 52.37},
            "Network": {"ASNumber": 64_500, "ASName": "Example", "Missing": False},
        },
        "server": {"IP": "192.0.2.1", "Port": 443, "Site": "ams03", "Machine": "mlab2"},
    }  # fmt: skip
    return f"{json.dumps(row)}\n"


def _ss(traffic: _Traffic) -> str:
    number = traffic.random.randrange(2**32)
    client = traffic.client()
    peer = f"[{client}]" if ":" in client else client
    local = "[2001:db8::1]" if ":" in client else "192.0.2.1"
    sent, rtt_ms = traffic.size(), traffic.rtt_us() / 1000
    again = sent // 100 // 1448 * 1448
    is_bbr = number % 2
    bbr = f" bbr:(bw:{sent}bps,mrtt:{rtt_ms:.3f},pacing_gain:1.25,cwnd_gain:2)" if is_bbr else ""
    segments = sent // 1448 + 1
    return (
        f'ESTAB 0 {number % 9000} {local}:443 {peer}:{traffic.port()} users:(("nginx",pid=12,fd={number % 900})) '
        f"ino:{number % 10**6} sk:{number:x} cgroup:/system.slice/nginx.service <->\n"
        f"\t ts sack {'bbr' if is_bbr else 'cubic'} wscale:7,10 rto:224 rtt:{rtt_ms:.3f}/5.1 ato:40 mss:1448 "
        f"pmtu:1500 rcvmss:536 advmss:1448 cwnd:42 ssthresh:30 bytes_sent:{sent} bytes_retrans:{again} "
        f"bytes_acked:{sent - again} bytes_received:421 segs_out:{segments + 4} segs_in:{segments // 2 + 2} "
        f"data_segs_out:{segments} data_segs_in:1{bbr} send 20.8Mbps lastsnd:4 lastrcv:90 lastack:4 "
        f"pacing_rate 25.1Mbps delivery_rate 12.0Mbps delivered:{segments} app_limited busy:420ms "
        f"rwnd_limited:12ms(2.9%) retrans:0/{again // 1448} dsack_dups:1 reord_seen:3 rcv_space:14600 "
        f"rcv_ssthresh:64076 notsent:100 minrtt:{rtt_ms:.3f} snd_wnd:65535\n"
    )


HEADS = {"csv": "finished,client,algorithm,size_kB,time_ms,min_rtt_ms,lost,secure\n"}
ROWS: dict[str, Callable[[_Traffic], str]] = {
    "nginx": _nginx, "varnish": _varnish, "csv": _csv, "ndt": _ndt, "ss": _ss,
}  # fmt: skip
FORMS = tuple(ROWS)


def options(form: str) -> list[str]:
    """Return the options of `thalweg import` that a synthetic log of this format needs."""
    if form == "csv":
        return [word for column in CSV_MAP for word in ("--map", column)]
    return {"nginx": ["--format-string", NGINX], "varnish": ["--format-string", VARNISH]}.get(form, [])


def write(form: str, file: Path, lines: int, seed: int = 1) -> int:
    """Write a log of at least `lines` lines, and return their number."""
    written = 0
    with file.open("w", encoding="utf-8") as out:
        for block in _blocks(form, seed):
            out.write(block)
            written += block.count("\n")
            if written >= lines:
                return written
    raise AssertionError("a synthetic log has no end")


def _blocks(form: str, seed: int) -> Iterator[str]:
    traffic = _Traffic(seed)
    yield HEADS.get(form, "")
    while True:
        if form == "ss":
            yield f"{datetime.fromtimestamp(traffic.tick(), UTC):%Y-%m-%dT%H:%M:%S}+00:00\n"
        rows = [_damaged(ROWS[form](traffic), traffic) for _ in range(BLOCK // (2 if form == "ss" else 1))]
        yield "".join(rows)


def _damaged(row: str, traffic: _Traffic) -> str:
    """Return the row; about one in a thousand is truncated, or its first two digits `1` are replaced with `one`."""
    if traffic.random.random() >= MALFORMED_SHARE:
        return row
    if traffic.random.random() < 0.5:
        return f"{row[: len(row) // 3].rstrip()}\n"
    return row.replace("1", "one", 2)
