"""A synthetic study, with a figure of every kind, for tests of its page and of figures as files."""

import math
from typing import Any

import polars as pl
from thalweg.report.drawing.figure import Figure, Scaled
from thalweg.report.pages.study import PageClaim, PageVerdict, Provenance, Section, StudyPage

BUFFERS = [0.5, 1.0, 2.0, 4.0, 8.0]
LOSSES = [10 ** (-6 + step / 4) for step in range(17)]
RATES = [10e6, 20e6, 50e6, 100e6, 250e6, 500e6, 750e6, 1000e6]
RTTS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2]


def _measured(value: float) -> dict[str, float]:
    return {"y": value, "low": value * 0.92, "high": value * 1.08}


def figures() -> list[Figure]:
    """Return a figure of each kind; some have panels, several lines or engines, or a theoretical curve."""
    return [
        Figure(
            "times", "Completion time of medium flows", "lines", pl.DataFrame(_times()), paper="Figure 2",
            x=Scaled("buffer (BDP)", is_log=True), y=Scaled("completion time", "s"), about="Lower is better.",
        ),
        Figure(
            "goodput", "Goodput of the large flow", "bars", pl.DataFrame(_goodputs()), paper="Figure 3",
            x=Scaled("buffer"), y=Scaled("goodput", "bit/s"),
        ),
        Figure(
            "gain", "Gain of BBR over CUBIC", "heatmap", pl.DataFrame(_gains()), paper="Figure 4",
            x=Scaled("rate", "bit/s"), y=Scaled("RTT", "s"), value=Scaled("gain", "ratio"), middle=0.0,
        ),
        Figure(
            "cdf", "Completion times", "cdf", pl.DataFrame(_distributions()), paper="Figure 5",
            x=Scaled("completion time", "s"),
        ),
        Figure(
            "rates", "Rates over time", "series", pl.DataFrame(_rates()), paper="Figure 6", y=Scaled("rate", "bit/s"),
        ),
        Figure(
            "loss", "Throughput against loss", "points", pl.DataFrame(_losses()), paper="Figure 7",
            x=Scaled("loss", is_log=True), y=Scaled("goodput", "bit/s", is_log=True),
            curves=pl.DataFrame([{"name": "equation 7", "x": loss, "y": 1e9 / (1 + loss * 1.3e4)} for loss in LOSSES]),
        ),
    ]  # fmt: skip


def page(**changes: Any) -> StudyPage:
    """Return the study's page."""
    claims = [
        PageClaim("a", "Large yields.", "fig. 3", "by half", [PageVerdict("sim", "holds", "0.52 (0.48 to 0.56)", 10)]),
        PageClaim(
            "b",
            "Medium wins.",
            "fig. 4",
            "2.0",
            [
                PageVerdict("sim", "does not hold", "0.9 (0.8 to 1.0)", 10),
                PageVerdict("uml", "cannot run here", note="too long"),
            ],
            reason="The simulator has no HyStart.",
        ),
        PageClaim("c", "Nothing else.", "fig. 5", "0", [PageVerdict("uml", "not settled", "0.1 (-0.1 to 0.3)", 3)]),
    ]
    values: dict[str, Any] = {
        "name": "synthetic",
        "title": "A mixed workload",
        "about": "A large flow meets medium flows.",
        "cite": "Author et al., A Mixed Workload (2018)",
        "url": "https://doi.org/10.1000/1",
        "story": "# A mixed workload\n\n## What they did\n\nThey *measured*.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n",
        "engines": ["sim", "uml"],
        "claims": claims,
        "provenance": [
            Provenance(
                "sim", "0.1.0", "thalweg reproduce synthetic", seconds=12.34, experiments=80, scaled=["1 s, not 60 s."]
            )
        ],
        "sections": [Section("A tree", "`a`")],
    }
    return StudyPage(**values | changes)


def _times() -> list[dict[str, Any]]:
    return [
        {"x": bdp, **_measured(0.4 + (0.1 * bdp if medium == "cubic" else 0.0) + (0.02 if large == "bbr" else 0.0)),
         "series": f"{large} large, {medium} medium", "panel": f"{rate} Mbit/s", "engine": engine}
        for engine in ("sim", "uml") for rate in (10, 40)
        for large in ("cubic", "bbr") for medium in ("cubic", "bbr") for bdp in BUFFERS
    ]  # fmt: skip


def _goodputs() -> list[dict[str, Any]]:
    return [
        {"x": f"{bdp:g} BDP", **_measured(30e6 * (0.8 + 0.05 * bdp)), "series": cc, "engine": "sim"}
        for bdp in BUFFERS for cc in ("cubic", "bbr")
    ]  # fmt: skip


def _gains() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for panel in ("100 kB", "10 MB"):
        for rate in RATES:
            for rtt in RTTS:
                gain = 0.4 * math.log10(rate / 100e6) + 0.5 * math.log10(rtt / 0.05)
                row = {"x": rate, "y": rtt, "value": gain, "low": gain - 0.1, "high": gain + 0.1, "panel": panel}
                rows.append(row)
    rows[5]["value"] = 9.3  # an outlier
    return rows


def _distributions() -> list[dict[str, Any]]:
    return [
        {"value": 0.01 * step * (2 if cc == "cubic" else 1), "share": step / 100, "series": cc, "panel": panel}
        for panel in ("0.5 BDP", "8 BDP") for cc in ("cubic", "bbr") for step in range(1, 101)
    ]  # fmt: skip


def _rates() -> list[dict[str, Any]]:
    return [
        {"t_s": step / 10, "value": 20e6 + 1e7 * math.sin(step / 20 + phase), "flow": flow, "panel": panel}
        for panel in ("bbr", "cubic") for phase, flow in enumerate(("large", "medium")) for step in range(400)
    ]  # fmt: skip


def _losses() -> list[dict[str, Any]]:
    return [
        {"x": loss, **_measured(1e9 / (1 + loss * (1e4 if cc == "cubic" else 100))), "series": cc}
        for loss in LOSSES for cc in ("cubic", "bbr")
    ]  # fmt: skip
