"""Rules of [host.NAME]: its CPU, its queue discipline and its network card."""

import re
from fractions import Fraction
from pathlib import Path

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.positions import KeyPath
from thalweg.scenario.rules import rules_credit, rules_direction
from thalweg.scenario.text import quantities

DEFAULT_SLICE = "10ms"

DEFAULT_COST = "1us"
"""Default CPU time per packet or acknowledgement; docs/concepts/cpu-contention.md gives the reason."""

SHORTEST_SLICE_NS = 10_000
"""Minimum slice."""

LONGEST_SLICE_NS = 10**9

LONGEST_PERIOD_NS = 60 * 10**9

WITH_SHARE = ("cpu_slice", "cpu_slice_jitter", "cpu_per_packet", "cpu_per_ack", "cpu_model")

TWO_CPUS = 2
"""Maximum number of CPUs of a host: one for the application and one for interrupts."""

LONGEST_COALESCING_NS = 100_000_000

KEYS = ("cpu_share", *WITH_SHARE, *rules_credit.KEYS, "cpus", "co_tenants")

QDISC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,14}")
"""Valid names of queue disciplines; a kernel stores 16 bytes, including the terminating null."""


def check(raw: Raw, _folder: Path, mistakes: Mistakes) -> None:
    """Check the hosts."""
    for name, host in values.table(raw, "host").items():
        if not isinstance(host, dict):
            continue
        _coalescing(host, name, mistakes)
        keys = [key for key in KEYS if key in host]
        if name == "receiver" and keys:
            mistakes.add(
                "bad-host",
                ("host", name, keys[0]),
                f"`host.{name}.{keys[0]}` is not supported: the CPU of the host `receiver` cannot be configured",
                expected="a host at the sender's end of the path",
                hint=f"write it under [host.sender], or under the host that a flow names: [host.NAME] {keys[0]} = ...",
            )
            continue
        if "qdisc" in host:
            _qdisc(host["qdisc"], name, mistakes, is_sending=name != "receiver" or rules_direction.has_up(raw))
        _combinations(host, name, mistakes)
        rules_credit.check(host, name, mistakes)
        _amounts(host, ("host", name), f"host.{name}", mistakes)


def period_ns(share: float, slice_ns: int) -> int:
    """Return the period of slices, rounded to nanoseconds.

    >>> period_ns(0.7, 10_000_000)
    14285714
    """
    return round(slice_ns / Fraction(str(share)))


def _qdisc(qdisc: object, name: str, mistakes: Mistakes, *, is_sending: bool) -> None:
    """Check the host of a queue discipline, and its name."""
    key_path = ("host", name, "qdisc")
    if not is_sending:
        mistakes.add(
            "bad-host",
            key_path,
            "`host.receiver.qdisc` is set for a host that only receives; only sending hosts have a queue discipline",
            expected='a host that sends, or a flow with direction = "up"',
            hint="write it under [host.sender], or under the host that a flow names; the path's queue is path.queue",
        )
    elif isinstance(qdisc, str) and not QDISC.fullmatch(qdisc):
        mistakes.add(
            "bad-name",
            key_path,
            f"`host.{name}.qdisc` is not the name of a queue discipline",
            found=qdisc,
            expected="1 to 15 letters, digits, dashes and underscores; its parameters are the kernel's defaults",
            hint='qdisc = "fq"',
        )


def _coalescing(host: Raw, name: str, mistakes: Mistakes) -> None:
    interval_ns = values.quantity(host, "interrupt_coalescing", quantities.time, "0s")
    if interval_ns is not None and interval_ns > LONGEST_COALESCING_NS:
        mistakes.add(
            "out-of-range",
            ("host", name, "interrupt_coalescing"),
            f"`host.{name}.interrupt_coalescing` is too long",
            found=str(host["interrupt_coalescing"]),
            expected='a time from "0us" to "100ms"',
            hint='interrupt_coalescing = "50us"',
        )


def _combinations(host: Raw, name: str, mistakes: Mistakes) -> None:
    if "cpu_share" in host and host.get("co_tenants"):
        mistakes.add(
            "conflict",
            ("host", name, "co_tenants"),
            f"[host.{name}] has `cpu_share` and `co_tenants`",
            expected="one restriction of the CPU: a fixed share, or co-tenant processes",
            hint="remove one of cpu_share, co_tenants",
        )
    if host.get("cpus") == TWO_CPUS and host.get("co_tenants"):
        mistakes.add(
            "conflict",
            ("host", name, "co_tenants"),
            f"[host.{name}] has `cpus = 2` and `co_tenants`",
            expected="one CPU, which the host and its co-tenants share",
            hint="remove cpus, or use cpu_share instead of co_tenants",
        )
    if "cpu_share" not in host:
        for key in (key for key in WITH_SHARE if key in host):
            mistakes.add_missing(
                ("host", name, key),
                f"`host.{name}.{key}` has no effect without a `cpu_share`",
                expected="a cpu_share in the same table",
                hint=f"add cpu_share = 0.5 to [host.{name}], or remove {key}",
                instead=(f"host.{name}.cpu_share",),
            )


def _amounts(host: Raw, key_path: KeyPath, name: str, mistakes: Mistakes) -> None:
    share = host.get("cpu_share")
    if share == 0:
        mistakes.add(
            "out-of-range",
            (*key_path, "cpu_share"),
            f"`{name}.cpu_share` is zero: the host would never run",
            found=str(share),
            expected="a number above 0, at most 1",
            hint="a quarter of a CPU is cpu_share = 0.25",
        )
    slice_ns = values.quantity(host, "cpu_slice", quantities.time, DEFAULT_SLICE)
    if slice_ns is not None and not SHORTEST_SLICE_NS <= slice_ns <= LONGEST_SLICE_NS:
        mistakes.add(
            "out-of-range",
            (*key_path, "cpu_slice"),
            f"`{name}.cpu_slice` is too {'short' if slice_ns < SHORTEST_SLICE_NS else 'long'}",
            found=str(host["cpu_slice"]),
            expected='a time from "10us" to "1s"',
            hint='cpu_slice = "10ms"',
        )
    elif (
        slice_ns
        and isinstance(share, int | float)
        and 0 < share <= 1
        and period_ns(share, slice_ns) > LONGEST_PERIOD_NS
    ):
        mistakes.add(
            "out-of-range",
            (*key_path, "cpu_share"),
            f"`{name}` would be off CPU for more than a minute at a time",
            found=f"cpu_slice / cpu_share = {period_ns(share, slice_ns) / 1e9:.6g} s",
            expected="at most 60 s",
            hint="raise cpu_share, or choose a shorter cpu_slice",
        )
    _jitter(host, key_path, name, slice_ns, mistakes)
    for key in ("cpu_per_packet", "cpu_per_ack"):
        cost = values.quantity(host, key, quantities.time, DEFAULT_COST)
        if cost is not None and cost > LONGEST_SLICE_NS:
            mistakes.add(
                "out-of-range",
                (*key_path, key),
                f"`{name}.{key}` is too long",
                found=str(host[key]),
                expected='a time from "0us" to "1s"',
                hint=f'{key} = "{DEFAULT_COST}"',
            )


def _jitter(host: Raw, key_path: KeyPath, name: str, slice_ns: int | None, mistakes: Mistakes) -> None:
    """Check that the longest slice fits into a period."""
    share, jitter = host.get("cpu_share"), host.get("cpu_slice_jitter")
    if not (slice_ns and isinstance(share, int | float) and isinstance(jitter, int | float) and 0 < share < 1):
        return
    if slice_ns * (1 + Fraction(str(jitter))) > period_ns(share, slice_ns):
        mistakes.add(
            "out-of-range",
            (*key_path, "cpu_slice_jitter"),
            f"`{name}.cpu_slice_jitter` allows slices that are longer than a period",
            found=str(jitter),
            expected=f"at most 1 / cpu_share - 1, here {float(1 / Fraction(str(share)) - 1):.3g}",
            hint="lower cpu_slice_jitter, or cpu_share",
        )
