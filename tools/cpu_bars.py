"""Measures bbr_cpu against cubic on senders with a shared CPU, and against bbr on senders with a dedicated CPU.

    python tools/cpu_bars.py                 on the simulator: a minute
    python tools/cpu_bars.py --engine vm     in guests, in real time: about 40 minutes, as root
    python tools/cpu_bars.py --engine kernel --only whole     a dedicated CPU with this machine's own kernel
    ... --only 10/20 --out FILE

Runs scenarios/cpu with each slice and period, three times each (nine times alone on a dedicated CPU, where a difference
of a tenth must be detected), takes medians, and reports which of these limits are met:

- bbr gets less than a third of cubic's goodput at 10/20 ms;
- bbr_cpu gets at least 95 % of cubic's goodput at every slice and period, and sends less than 2 % again;
- at 10/20 and 10/40 ms with 1 % of random loss, it gets at least three times cubic's goodput;
- on a dedicated CPU, it is within 2 % of bbr's goodput, and at most 10 % worse in the 95th percentile of the queue, in
  retransmissions and in the goodput of a cubic neighbour.

With `--engine vm`, a dedicated CPU is measured on the host with the engine `kernel`, because a guest without KVM
sometimes lacks CPU time even then. bbr_cpu is loaded into the host's kernel for that measurement.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
AGENT = Path(os.environ.get("THALWEG_AGENT", str(Path(sys.executable).with_name("thalweg-agent"))))
FREE = {"vm": "kernel"}
"""Engine for the dedicated CPU, if it differs from the requested engine."""
CELLS = ("1/4", "10/14.3", "10/20", "10/25", "10/40", "20/80")
"""Slices and periods in milliseconds, as SLICE/PERIOD."""
LOSSY = ("10/20", "10/40")
"""Slices and periods that are also run with 1 % of random loss."""
RANDOM_LOSS = 0.01
SETTLED_S = 2.0
"""Start of the evaluation of queues, after Startup."""

Point = dict[str, float]
"""Results at one point: those of a repetition, or medians over repetitions."""


def main() -> None:
    """Measure, and report which limits are met."""
    parser = argparse.ArgumentParser(description="Compare bbr_cpu with cubic and bbr, on a shared and a dedicated CPU.")
    parser.add_argument("--engine", default="sim", help="engine to use (default: sim)")
    parser.add_argument(
        "--only", action="append", metavar="SLICE/PERIOD", help="run only this; `whole`: a dedicated CPU"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a scenario key")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for the measurements")
    chosen = parser.parse_args()
    wanted = chosen.only or [*CELLS, "whole"]
    results: dict[str, Any] = {}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="thalweg-bars-") as folder:
        run = Runner(chosen.engine, chosen.set, Path(folder))
        free = Runner(FREE.get(chosen.engine, chosen.engine), chosen.set, Path(folder) / "free")
        for cell in wanted:
            for name, points, bars in whole(free) if cell == "whole" else contended(run, cell):
                results[name] = points
                print(f"{name}", flush=True)
                for cc, point in points.items():
                    print(f"  {cc:<22}" + "  ".join(f"{key} {value:.6g}" for key, value in point.items()))
                for text, holds in bars:
                    failed += not holds
                    print(f"  {'holds ' if holds else 'FAILS '} {text}", flush=True)
    if chosen.out:
        chosen.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if failed else 0)


class Runner:
    """Runs scenarios and reads their results."""

    def __init__(self, engine: str, options: list[str], folder: Path) -> None:
        """Create a runner with KEY=VALUE options; run directories are created in `folder`."""
        self.engine, self.given, self.folder = engine, options, folder
        self.count = 0

    def __call__(self, scenario: str, keys: dict[str, Any]) -> dict[str, Point]:
        """Return a point for each algorithm of the scenario's sweep."""
        self.count += 1
        out = self.folder / str(self.count)
        command = [sys.executable, "-m", "thalweg", "run", str(ROOT / "scenarios" / "cpu" / f"{scenario}.toml")]
        command += ["--engine", self.engine, "--out", str(out), "--no-report"]
        for key_value in [*(f"{key}={value}" for key, value in keys.items()), *self.given]:
            command += ["--set", key_value]
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit(f"cpu_bars: {scenario} did not complete; its output is above")
        plan = json.loads((out / "run.json").read_text(encoding="utf-8"))["plan"]
        points = {
            (entry["experiment"], entry["repetition"]): entry["sweep"]["flow.main.cc"] for entry in plan["experiments"]
        }
        flows = pl.read_parquet(out / "flows" / "*.parquet")
        queue = pl.read_parquet(out / "queue" / "*.parquet").filter(
            (pl.col("link") == "forward") & (pl.col("t_us") >= SETTLED_S * 1e6)
        )
        repetitions: dict[str, list[Point]] = {}
        for (experiment, repetition), cc in points.items():
            this = (pl.col("experiment") == experiment) & (pl.col("repetition") == repetition)
            rows = flows.filter(this)
            if rows["untrustworthy"].is_not_null().any():
                print(f"  {cc}: repetition {repetition} is untrustworthy, but counts nevertheless", flush=True)
            repetitions.setdefault(cc, []).append(_repetition(rows, queue.filter(this)["backlog_bytes"]))
        return {
            cc: {key: median(values[key] for values in several) for key in several[0]}
            for cc, several in repetitions.items()
        }


def _repetition(rows: pl.DataFrame, backlog: pl.Series) -> Point:
    by_flow = {row["flow"]: row for row in rows.iter_rows(named=True)}
    main = by_flow["main"]
    goodput = {f"{flow}_mbps": row["goodput_bps"] / 1e6 for flow, row in sorted(by_flow.items())}
    again = 100 * main["retransmits"] / max(1, main["segments"])
    return goodput | {"sent_again_percent": again, "queue_p95_bytes": float(backlog.quantile(0.95) or 0.0)}


def contended(run: Runner, cell: str) -> Iterator[tuple[str, dict[str, Point], list[tuple[str, bool]]]]:
    """Yield the results at a slice and period; for those in `LOSSY`, also with random loss."""
    slice_ms, period_ms = (float(part) for part in cell.split("/"))
    keys = {"host.sender.cpu_slice": f'"{slice_ms:g}ms"', "host.sender.cpu_share": round(slice_ms / period_ms, 6)}
    points = run("contended", keys)
    cubic, bbr, cured = (points[cc] for cc in ("cubic", "bbr", "bbr_cpu"))
    ratio = cured["main_mbps"] / cubic["main_mbps"]
    bars = [
        (f"bbr_cpu gets {ratio:.3f} of cubic, at least 0.95", ratio >= 0.95),
        (f"bbr_cpu sends {cured['sent_again_percent']:.2f} % again, under 2 %", cured["sent_again_percent"] < 2),
    ]
    if cell == "10/20":
        share = bbr["main_mbps"] / cubic["main_mbps"]
        bars.append((f"bbr gets {share:.3f} of cubic, under 1/3", share < 1 / 3))
    yield f"{cell} ms", points, bars
    if cell in LOSSY:
        points = run("contended", keys | {"path.loss": RANDOM_LOSS})
        times = points["bbr_cpu"]["main_mbps"] / points["cubic"]["main_mbps"]
        yield f"{cell} ms, 1 % lost", points, [(f"bbr_cpu gets {times:.1f} times cubic, at least 3", times >= 3)]


@contextmanager
def loaded() -> Iterator[None]:
    """Register bbr_cpu in the host's kernel for the duration of the context."""
    loader = subprocess.Popen([AGENT, "cc", "load", "bbr_cpu"], stdout=subprocess.PIPE, text=True)
    assert loader.stdout
    try:
        if not loader.stdout.readline():
            sys.exit("cpu_bars: bbr_cpu could not be loaded; the loader's output is above")
        yield
    finally:
        loader.terminate()
        loader.wait()


def whole(run: Runner) -> Iterator[tuple[str, dict[str, Point], list[tuple[str, bool]]]]:
    """Yield the results on a dedicated CPU, alone and beside cubic."""
    with loaded() if run.engine == "kernel" else nullcontext():
        points, beside = run("whole", {}), run("neighbour", {})
    bbr, cured = points["bbr"], points["bbr_cpu"]
    goodput = cured["main_mbps"] / bbr["main_mbps"]
    queue = cured["queue_p95_bytes"] / bbr["queue_p95_bytes"]
    again = (cured["sent_again_percent"], bbr["sent_again_percent"])
    yield (
        "whole CPU",
        points,
        [
            (f"bbr_cpu gets {goodput:.3f} of bbr, 0.98 to 1.02", abs(goodput - 1) <= 0.02),
            (f"the queue's 95th percentile is {queue:.3f} of bbr's, at most 1.1", queue <= 1.1),
            (f"it sends {again[0]:.2f} % again, bbr {again[1]:.2f} %, at most 1.1 times", again[0] <= 1.1 * again[1]),
        ],
    )
    neighbour = beside["bbr_cpu"]["neighbour_mbps"] / beside["bbr"]["neighbour_mbps"]
    text = f"a cubic neighbour gets {neighbour:.3f} of what it gets beside bbr, at least 0.9"
    yield "whole CPU, a cubic neighbour", beside, [(text, neighbour >= 0.9)]


if __name__ == "__main__":
    main()
