"""Cautions about the numbers of a run, as sentences without a full stop."""

import polars as pl

from thalweg import printable
from thalweg.analysis.comparing.evidence import evidence
from thalweg.analysis.measuring import copies
from thalweg.analysis.measuring.summary import summary
from thalweg.results import Run

COUNTS = ("connections", "starved")


def cautions(run: Run, measured: pl.DataFrame | None = None) -> list[str]:
    """Return the cautions of a run.

    Args:
        run: An open run directory.
        measured: Rows of `summary` for the run with the measures `COUNTS`; None: tables are read for them.
    """
    return [caution for caution in (evidence(run).caution, copies.caution(run), *starved(run, measured)) if caution]


def starved(run: Run, measured: pl.DataFrame | None = None) -> list[str]:
    """Return a sentence for each flow with starved connections, on the worst point of the sweep."""
    counts = summary(run, measures=COUNTS) if measured is None else measured.filter(pl.col("measure").is_in(COUNTS))
    wide = counts.pivot("measure", index=["experiment", *run.sweep_keys, "flow"], values="mean", maintain_order=True)
    share = pl.col("starved") / pl.col("connections")
    starved_flows = []
    for (flow,), points in wide.group_by("flow", maintain_order=True) if wide.height else ():
        hit = points.filter(pl.col("starved") > 0).sort(share, descending=True, maintain_order=True)
        if not hit.height:
            continue
        worst = hit.row(0, named=True)
        number = "connection" if worst["connections"] == 1 else "connections"
        count = f"{worst['starved']:.4g} of {worst['connections']:.4g} {number}"
        part = f"{worst['starved'] / worst['connections'] * 100:.3g} %"
        worst_point = ", ".join(f"{key} = {printable.plain(worst[key])}" for key in run.sweep_keys)
        at = f" at {worst_point}" if points.height > 1 else ""
        others = f"; {hit.height} of {points.height} points have such connections" if hit.height > 1 else ""
        starved_flows.append(f"{count} of the flow {flow} ({part}) never delivered a byte{at}{others}")
    return starved_flows
