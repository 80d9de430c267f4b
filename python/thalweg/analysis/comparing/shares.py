"""The CPU share that sending hosts got, compared with that of the scenario."""

from dataclasses import dataclass

import numpy as np

from thalweg.results import Run

RECEIVED = "cpu_share_received"
"""The engine's name of it; with several sending hosts, `cpu_share_received_of_NAME`."""

MEASURES = ("cpu_share_asked", RECEIVED, "cpu_slice_median_us", "co_tenants_cpu_share")
"""All that engines measure of it."""


@dataclass(frozen=True)
class CpuShare:
    """A sending host at all points where it has as much of a CPU."""

    host: str
    slice_ns: int | None
    """None: it has no share in slices."""
    period_ns: int | None
    co_tenants: int
    n: int
    """Experiments."""
    received: float
    """Part of the time in which it was on CPU, median of the experiments."""
    largest: float
    slice_us: float | None
    """Median length of slices for a process that always computes; None: not measured."""
    tenants: float | None
    """Median share of the time in which its co-tenants, in total, were on CPU."""


def is_of_a_share(name: str) -> bool:
    """Return whether an engine's measure is about a share of a CPU.

    >>> is_of_a_share("cpu_share_received_of_left"), is_of_a_share("relay_cpu_percent")
    (True, False)
    """
    return name.partition("_of_")[0] in MEASURES


def shares(run: Run) -> list[CpuShare]:
    """Return the CPU share that each sending host got, for each configured share, the largest first.

    Untrustworthy experiments count, as for all measurements of engines about themselves.
    """
    hosts = {
        (experiment["experiment"], experiment["repetition"]): experiment["hosts"]
        for experiment in run.plan["experiments"]
    }
    numbers_by_key: dict[tuple[str, int | None, int | None, int], list[dict[str, float]]] = {}
    for measured in run.measured:
        for name in measured.numbers:
            if name.partition("_of_")[0] != RECEIVED:
                continue
            suffix = name.removeprefix(RECEIVED)
            host = suffix.removeprefix("_of_") or "sender"
            host_settings = hosts[measured.experiment, measured.repetition].get(host)
            cpu = host_settings.get("cpu") if host_settings else None
            slice_and_period = (cpu["slice_ns"], cpu["period_ns"]) if cpu else (None, None)
            key = (host, *slice_and_period, host_settings.get("co_tenants", 0) if host_settings else 0)
            of_host = {key: measured.numbers[key + suffix] for key in MEASURES if key + suffix in measured.numbers}
            numbers_by_key.setdefault(key, []).append(of_host)
    return [_share(key, numbers) for key, numbers in sorted(numbers_by_key.items(), key=lambda item: _order(item[0]))]


def _share(key: tuple[str, int | None, int | None, int], numbers: list[dict[str, float]]) -> CpuShare:
    received = [number[RECEIVED] for number in numbers]
    slice_us, tenants = (_median(numbers, name) for name in MEASURES[2:])
    return CpuShare(*key, len(numbers), float(np.median(received)), max(received), slice_us, tenants)


def _median(numbers: list[dict[str, float]], name: str) -> float | None:
    values = [number[name] for number in numbers if name in number]
    return float(np.median(values)) if values else None


def _order(key: tuple[str, int | None, int | None, int]) -> tuple[str, int, float, int]:
    host, slice_ns, period_ns, tenants = key
    return host, tenants, -(slice_ns / period_ns) if slice_ns and period_ns else -2.0, slice_ns or 0
