"""Generates the table of outcomes from which `thalweg policy simulate` draws: crates/policy/data/outcomes.json.

    python tools/policy_outcomes.py              all of it, with the simulator: some minutes
    python tools/policy_outcomes.py --check      a cell of each kind of path, compared with the file

The kinds of paths, the arms and the sizes are those of crates/policy/data/population.json. For each kind, arm and size,
an object is sent repeatedly beside other users' traffic, on a host with a dedicated CPU and on one with a shared CPU.
Each transfer is a row of its cell: completion time, segments, retransmissions and round-trip times belong together. A
second experiment measures the effect of an arm on others: one unlimited connection beside one of CUBIC.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from thalweg import engine, plan, scenario  # noqa: E402
from thalweg.results import open_run  # noqa: E402
from thalweg.run import execute  # noqa: E402
from thalweg.scenario.text import quantities  # noqa: E402

DATA = ROOT / "crates" / "policy" / "data"
FORMAT = 1
REPETITIONS = 4
OBJECTS = 8
"""Number of consecutive transfers in an experiment."""
DURATION_S = 60
"""Duration of an experiment; an incomplete object of at least `MIN_US` counts with the rate that it has reached."""
MIN_US = 10e6
"""Minimum duration of an incomplete object for its rate to count."""
DUEL_S = 30
DUELS = 3
COLUMNS = ("fct_us", "segments", "retransmits", "rtt_min_us", "rtt_p95_us")

Document = dict[str, Any]


def main() -> int:
    """Generate the table, or check a part of it."""
    parser = argparse.ArgumentParser(description="Generate the table of outcomes from which policies are simulated.")
    parser.add_argument("--check", action="store_true", help="run a cell of each kind of path, and compare it")
    chosen = parser.parse_args()
    population = json.loads((DATA / "population.json").read_text(encoding="utf-8"))
    if chosen.check:
        return check(population)
    with tempfile.TemporaryDirectory(prefix="thalweg-outcomes-") as folder:
        write(outcomes(population, Path(folder)))
    return 0


def outcomes(population: Mapping[str, Any], folder: Path) -> Document:
    """Run all experiments and return the table."""
    kinds = {}
    for kind in population["kinds"]:
        print(kind["name"], file=sys.stderr, flush=True)
        kinds[kind["name"]] = {
            "cells": list(cells(population, kind, folder)),
            "neighbour": neighbour(population, kind, folder),
        }
    return {
        "format": FORMAT,
        "made_by": "python tools/policy_outcomes.py",
        "engine": f"sim, results {engine.capabilities().engines[engine.DEFAULT].version}",
        "columns": list(COLUMNS),
        "kinds": kinds,
    }


def cells(population: Mapping[str, Any], kind: Mapping[str, Any], folder: Path) -> Iterator[Document]:
    """Yield a cell for each combination of CPU, arm and size."""
    for cpu in ("whole", "shared"):
        sweep = {
            "flow.object.cc": population["arms"],
            "flow.object.size": [size["bytes"] for size in population["sizes"]],
        }
        flows = run(objects(population, kind, cpu, sweep), folder / f"{kind['name']}-{cpu}")
        for arm in population["arms"]:
            for size in population["sizes"]:
                bytes_ = size["bytes"]
                is_cell = (pl.col("cc") == arm) & (pl.col("size_bytes") == bytes_) & (pl.col("flow") == "object")
                yield {"cpu": cpu, "arm": arm, "bytes": bytes_, "rows": rows(flows.filter(is_cell), kind)}


def objects(
    population: Mapping[str, Any], kind: Mapping[str, Any], cpu: str, sweep: Mapping[str, list[Any]]
) -> Document:
    """Return the scenario in which objects are sent beside other traffic."""
    cross = population["cross_traffic"]
    load = f"{scaled(kind['rate'], cross['load'])}bps"
    host = population["cpu"]
    return {
        "name": f"policy-{kind['name']}-{cpu}",
        "duration": f"{DURATION_S}s",
        "repetitions": REPETITIONS,
        "start_jitter": "1rtt",
        "sample_interval": "0s",
        "path": path(kind),
        "host": {
            **({"sender": {"cpu_share": host["share"], "cpu_slice": host["slice"]}} if cpu == "shared" else {}),
            "others": {},
        },
        "flow": [
            {
                "name": "object",
                "cc": "cubic",
                "size": "30kB",
                "start": "0.5s",
                "repeat": {"gap": "0.3s", "count": OBJECTS},
            },
            {
                "name": "others",
                "cc": "cubic",
                "host": "others",
                "repeat": {"arrivals": "poisson", "rate": load, "sizes": cross["sizes"]},
            },
        ],
        "sweep": {
            key: [f"{value}B" if isinstance(value, int) else value for value in values_]
            for key, values_ in sweep.items()
        },
    }


def neighbour(population: Mapping[str, Any], kind: Mapping[str, Any], folder: Path) -> dict[str, float]:
    """Return the median goodput of a CUBIC connection beside an unlimited one of each arm, relative to that beside
    CUBIC.
    """
    result = run(
        {
            "name": f"policy-{kind['name']}-duel",
            "duration": f"{DUEL_S}s",
            "repetitions": DUELS,
            "start_jitter": "1rtt",
            "sample_interval": "0s",
            "path": path(kind),
            "flow": [{"name": "ours", "cc": "cubic"}, {"name": "theirs", "cc": "cubic"}],
            "sweep": {"flow.ours.cc": population["arms"]},
        },
        folder / f"{kind['name']}-duel",
    )
    ours = result.filter(pl.col("flow") == "ours").select("experiment", "cc").unique().rename({"cc": "arm"})
    theirs = result.filter(pl.col("flow") == "theirs").join(ours, on="experiment")
    goodput = {arm: median(theirs.filter(pl.col("arm") == arm)["goodput_bps"]) for arm in population["arms"]}
    return {arm: round(goodput[arm] / goodput["cubic"], 4) for arm in population["arms"]}


def path(kind: Mapping[str, Any]) -> Document:
    """Return the path of a kind in the notation of scenarios."""
    return {key: kind[key] for key in ("rate", "rtt", "buffer", "loss")}


def scaled(rate: str, factor: float) -> int:
    """Return a rate in bits per second, multiplied by a factor.

    >>> scaled("40Mbps", 0.3)
    12000000
    """
    return round(quantities.rate(rate) * factor)


def run(document: Document, folder: Path) -> pl.DataFrame:
    """Run a scenario and return its table of transfers."""
    file = folder.with_suffix(".toml")
    file.write_text(toml(document), encoding="utf-8")
    capabilities = engine.capabilities()
    kind_plan = plan.make(scenario.load(file), engine.choose(engine.DEFAULT, capabilities), capabilities.engines)
    outcome = execute(kind_plan, folder, binary=capabilities.binary)
    if outcome.exit_code != 0 or outcome.failed:
        raise SystemExit(f"{folder.name}: {outcome.failed[:1] or outcome.exit_code}")
    return open_run(folder).flows()


def rows(flows: pl.DataFrame, kind: Mapping[str, Any]) -> list[list[int]]:
    """Return the transfers of a cell, in the order in which they were sent.

    An incomplete transfer is scaled to its full size, or left out if it lasted for less than `MIN_US` or delivered
    nothing.
    """
    empty_path_us = quantities.time(kind["rtt"]) / 1e3
    table = []
    for row in flows.sort("experiment", "repetition", "connection").iter_rows(named=True):
        elapsed_us = row["end_us"] - row["start_us"]
        if not row["acked_bytes"] or (not row["completed"] and elapsed_us < MIN_US):
            continue
        fct_us = row["fct_us"] or elapsed_us * row["size_bytes"] / row["acked_bytes"]
        rtt_min_us = row["rtt_min_us"] or empty_path_us
        rtt_p95_us = max(row["rtt_p95_us"] or rtt_min_us, rtt_min_us)
        share = row["size_bytes"] / row["acked_bytes"]
        table.append(
            [
                round(fct_us),
                round(row["segments"] * share),
                round(row["retransmits"] * share),
                round(rtt_min_us),
                round(rtt_p95_us),
            ]
        )
    return table


def check(population: Mapping[str, Any]) -> int:
    """Run the smallest cell of each kind, and report which cells differ from the file."""
    recorded = json.loads((DATA / "outcomes.json").read_text(encoding="utf-8"))
    stale = []
    with tempfile.TemporaryDirectory(prefix="thalweg-outcomes-") as folder:
        for kind in population["kinds"]:
            size, arm = population["sizes"][0]["bytes"], population["arms"][0]
            sweep = {"flow.object.cc": [arm], "flow.object.size": [size]}
            flows = run(objects(population, kind, "whole", sweep), Path(folder) / kind["name"])
            current = rows(flows.filter(pl.col("flow") == "object"), kind)
            wanted = next(
                cell["rows"]
                for cell in recorded["kinds"][kind["name"]]["cells"]
                if (cell["cpu"], cell["arm"], cell["bytes"]) == ("whole", arm, size)
            )
            if current != wanted:
                stale.append(kind["name"])
    for name in stale:
        print(
            f"outcomes.json: `{name}` differs from the simulator's result; run: python tools/policy_outcomes.py",
            file=sys.stderr,
        )
    return 1 if stale else 0


def write(document: Document) -> None:
    """Write the table with one cell per line."""
    kinds = document.pop("kinds")
    lines = [f'"{key}": {json.dumps(value)}' for key, value in document.items()]
    parts = []
    for name, kind in kinds.items():
        inner = ",\n".join("   " + json.dumps(cell, separators=(",", ":")) for cell in kind["cells"])
        parts.append(f'  "{name}": {{"neighbour": {json.dumps(kind["neighbour"])}, "cells": [\n{inner}\n  ]}}')
    text = "{\n " + ",\n ".join(lines) + ',\n "kinds": {\n' + ",\n".join(parts) + "\n }\n}\n"
    (DATA / "outcomes.json").write_text(text, encoding="utf-8")


def toml(document: Mapping[str, Any]) -> str:
    """Return a scenario as TOML with inline tables only.

    >>> print(toml({"name": "x", "path": {"rate": "1Mbps", "loss": 0.1}, "flow": [{"cc": "bbr"}]}))
    "name" = "x"
    "path" = { "rate" = "1Mbps", "loss" = 0.1 }
    "flow" = [{ "cc" = "bbr" }]
    <BLANKLINE>
    """
    return "".join(f"{json.dumps(key)} = {value_of(value)}\n" for key, value in document.items())


def value_of(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)} = {value_of(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_of(item) for item in value) + "]"
    return json.dumps(value)


if __name__ == "__main__":
    sys.exit(main())
