"""CPU shares that sending hosts received, and the configured ones, as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg import analysis
from thalweg.analysis import CpuShare
from thalweg.report.content import LabelledRun
from thalweg.report.text.labels import NOTHING
from thalweg.report.text.numbers import NARROW


@dataclass(frozen=True)
class ShareLine:
    """A host of one run, at all points with the same configured CPU share and number of co-tenants."""

    run: str
    """Label of the run; empty except in its first line."""
    host: str
    asked: str
    received: str
    largest: str
    slices: str
    tenants: str
    n: int


def share_lines(runs: Sequence[LabelledRun]) -> list[ShareLine]:
    """Return a line per run, host, configured share and number of co-tenants."""
    lines = []
    for labelled in runs:
        for number, share in enumerate(analysis.shares(labelled.run)):
            lines.append(
                ShareLine(
                    run="" if number else labelled.label,
                    host=share.host,
                    asked=_configured_share(share),
                    received=_percent(share.received),
                    largest=_percent(share.largest),
                    slices=NOTHING if share.slice_us is None else _ms(share.slice_us * 1e3),
                    tenants=NOTHING if share.tenants is None else _percent(share.tenants),
                    n=share.n,
                )
            )
    return lines


def _configured_share(share: CpuShare) -> str:
    if share.co_tenants:
        return f"{share.co_tenants} co-tenant{'s' if share.co_tenants > 1 else ''}"
    if share.slice_ns is None or share.period_ns is None or share.slice_ns >= share.period_ns:
        return "a CPU whenever it needs one"
    part = _percent(share.slice_ns / share.period_ns)
    return f"{part}: {_ms(share.slice_ns)} out of every {_ms(share.period_ns)}"


def _percent(part: float) -> str:
    return f"{100 * part:.3g}{NARROW}%"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g}{NARROW}ms"
