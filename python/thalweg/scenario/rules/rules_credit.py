"""Rules of a host's CPU credits: `cpu_model = "credit"` and its keys."""

from thalweg.scenario import values
from thalweg.scenario.document import Raw
from thalweg.scenario.mistakes import Mistakes
from thalweg.scenario.text import quantities

KEYS = ("cpu_credit", "cpu_credit_max", "cpu_baseline", "cpu_load")
"""Keys that require `cpu_model = "credit"`."""

HOURS_KEPT = 24
"""Default maximum of the balance, in hours of earned credit, as on EC2."""

TWO_CPUS = 2


def check(host: Raw, name: str, mistakes: Mistakes) -> None:
    """Check the CPU credits of a host."""
    model = host.get("cpu_model", "slices")
    if model == "slices":
        _unused(host, name, mistakes)
    if model != "credit":
        return
    if "cpu_credit" not in host:
        mistakes.add_missing(
            ("host", name, "cpu_model"),
            f'[host.{name}] has `cpu_model = "credit"` but no `cpu_credit`',
            expected="the CPU time that the host has at the start",
            hint='add cpu_credit = "60s", the equivalent of one CPU credit of EC2',
            instead=(f"host.{name}.cpu_credit",),
        )
    if host.get("cpus") == TWO_CPUS:
        mistakes.add(
            "conflict",
            ("host", name, "cpus"),
            f'[host.{name}] has `cpu_model = "credit"` and `cpus = 2`',
            expected="a single CPU, to which the credit applies",
            hint="remove one of cpu_model, cpus",
        )
    credit_ns = values.quantity(host, "cpu_credit", quantities.time)
    max_ns = values.quantity(host, "cpu_credit_max", quantities.time)
    if credit_ns is not None and max_ns is not None and credit_ns > max_ns:
        mistakes.add(
            "out-of-range",
            ("host", name, "cpu_credit"),
            f"`host.{name}.cpu_credit` is more than `cpu_credit_max`",
            found=str(host["cpu_credit"]),
            expected=f"at most {host['cpu_credit_max']}",
            hint="raise cpu_credit_max, or leave it out",
        )


def max_ns(credit_ns: int, baseline_ppm: int) -> int:
    """Return the default maximum of the balance, in ns of CPU time: 24 hours of earned credit, or the initial credit if
    that is more.

    >>> max_ns(0, 100_000) / 1e9
    8640.0
    """
    return max(credit_ns, HOURS_KEPT * 3600 * 1000 * baseline_ppm)


def _unused(host: Raw, name: str, mistakes: Mistakes) -> None:
    for key in (key for key in KEYS if key in host):
        mistakes.add_missing(
            ("host", name, key),
            f'`host.{name}.{key}` has no effect without `cpu_model = "credit"`',
            expected='cpu_model = "credit" in the same table',
            hint=f'add cpu_model = "credit" to [host.{name}], or remove {key}',
            instead=(f"host.{name}.cpu_model",),
        )
