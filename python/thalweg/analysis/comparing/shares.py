"""Compares the CPU share that sending hosts received with that of the scenario."""

from dataclasses import dataclass

import numpy as np

from thalweg.results import Run

RECEIVED = "cpu_share_received"
"""Name of the engine's measurement; with several sending hosts, `cpu_share_received_of_NAME`."""

MEASURES = ("cpu_share_asked", RECEIVED, "cpu_slice_median_us", "co_tenants_cpu_share")


@dataclass(frozen=True)
class CpuShare:
    """A sending host, at all points with the same configured CPU share and number of co-tenants."""

    host: str
    slice_ns: int | None
    """Length of its CPU slices; None: its CPU is not limited."""
    period_ns: int | None
    co_tenants: int
    n: int
    received: float
    """Fraction of time on CPU, median of the experiments."""
    largest: float
    slice_us: float | None
    """Median length of the slices of a process that never sleeps; None: not measured."""
    tenants: float | None
    """Median fraction of time in which its co-tenants, in total, were on CPU."""


def is_of_a_share(name: str) -> bool:
    """Return whether a measurement of an engine is about a CPU share.

    >>> is_of_a_share("cpu_share_received_of_left"), is_of_a_share("relay_cpu_percent")
    (True, False)
    """
    return name.partition("_of_")[0] in MEASURES


def shares(run: Run) -> list[CpuShare]:
    """Return the CPU share that each sending host received, for each configured share and number of co-tenants.

    Untrustworthy experiments are included.
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
