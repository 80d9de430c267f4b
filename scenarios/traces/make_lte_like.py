"""Writes lte-like.up: a synthetic capacity trace in mahimahi's format, computed from a formula.

The capacity at second t, in packets of 1500 bytes per second, is

    500 + 320 sin(2 pi t / 7.3) + 120 sin(2 pi t / 1.9) + 50 sin(2 pi t / 0.37)

but at least 20, and zero in the last 0.4 seconds of every 10: cells are handed over. The periods share no multiple
within the 20 seconds, after which the trace repeats. The mean is about 6 Mbit/s. It resembles LTE in that the capacity
changes by a factor of ten within seconds; it models no scheduler, and is not based on measurements.

    python make_lte_like.py > lte-like.up
"""

import math
import sys

SECONDS = 20
OUTAGE_EVERY_S = 10
OUTAGE_S = 0.4
LEAST = 20.0


def packets_per_second(t: float) -> float:
    """Return the capacity at second `t`."""
    if t % OUTAGE_EVERY_S >= OUTAGE_EVERY_S - OUTAGE_S:
        return 0.0
    waves = 320 * math.sin(2 * math.pi * t / 7.3) + 120 * math.sin(2 * math.pi * t / 1.9)
    return max(LEAST, 500 + waves + 50 * math.sin(2 * math.pi * t / 0.37))


def trace() -> list[int]:
    """Return the milliseconds at which a packet may leave; the last one ends the trace."""
    times, due = [], 0.0
    for ms in range(1, SECONDS * 1000 + 1):
        due += packets_per_second(ms / 1000) / 1000
        times += [ms] * int(due)
        due -= int(due)
    return times if times[-1] == SECONDS * 1000 else [*times, SECONDS * 1000]


if __name__ == "__main__":
    sys.stdout.write("\n".join(map(str, trace())) + "\n")
