#!/usr/bin/env python3
"""Measures the opening time of a large report, and of the page that Vega-Altair writes for one of its figures.

    make bench                               with the others: a minute
    .venv/bin/python bench/pages.py --quick  a smoke test: two points, once
    ... --out FILE                           all measurements, for programs

The report covers 640 experiments with 100 samples per second (bench/pages/grid.toml). The peer is a chart of the
congestion window over time with one line per experiment, written by `Chart.save(inline=True)`. Both are opened in
Chromium, each time in a new context without a cache, alternating. The report counts as open when its visible part is
drawn; the peer's page, when its figure is drawn.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import altair
import polars as pl
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
RUNS = 7
GOAL_S = 2.0
GOAL_BYTES = 5_000_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FEW = ['path.rate="10Mbps"', 'path.rtt="20ms"', 'path.buffer="1bdp"']
"""Settings that reduce the sweep to two points."""
OPENED = "html[data-drawn]"
PEER_OPENED = ".vega-embed canvas, .vega-embed svg"
LONGEST_MS = 120_000


@dataclass(frozen=True)
class Page:
    """A page, and its opening time in each run."""

    size_bytes: int
    opened_s: list[float]

    @property
    def typical_s(self) -> float:
        """Return the median opening time."""
        return median(self.opened_s)


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description="Measure how long a large report takes to open.")
    parser.add_argument("--quick", action="store_true", help="quick test: a few points, opened once")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file for all measurements")
    chosen = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        sys.exit("bench: Chromium, which opens the pages, is missing: install it with `apt-get install chromium`")
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        files = make(Path(folder), FEW if chosen.quick else [])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            turns = [
                (opened(browser, files[0], OPENED), opened(browser, files[1], PEER_OPENED))
                for _ in range(1 if chosen.quick else RUNS)
            ]
            browser.close()
        sizes = [file.stat().st_size for file in files]
    ours, peer = (Page(size, list(times)) for size, times in zip(sizes, zip(*turns, strict=True), strict=True))
    for name, page in (("report", ours), ("Altair's figure", peer)):
        low, high = min(page.opened_s), max(page.opened_s)
        print(f"{name:<16} {page.size_bytes / 1e6:6.2f} MB, opens in {page.typical_s:.2f} s [{low:.2f}, {high:.2f}]")
    print(f"goals: under {GOAL_BYTES / 1e6:g} MB, and {GOAL_S:g} s")
    if chosen.out:
        chosen.out.write_text(json.dumps({"report": asdict(ours), "peer": asdict(peer)}, indent=2) + "\n")


def make(folder: Path, settings: list[str]) -> tuple[Path, Path]:
    """Run the grid; return the paths of its report and of the peer's page."""
    run, ours, theirs = folder / "run", folder / "report.html", folder / "peer.html"
    command = [sys.executable, "-m", "thalweg", "run", str(HERE / "pages" / "grid.toml"), "--out", str(run)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run([*command, "--no-report"], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: the grid did not finish: {done.stderr}")
    report = [sys.executable, "-m", "thalweg", "report", str(run), "--out", str(ours)]
    subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
    samples = pl.read_parquet(run / "samples" / "*.parquet", columns=["experiment", "t_us", "cwnd_packets"])
    altair.data_transformers.disable_max_rows()
    axes = {"x": "t_us:Q", "y": "cwnd_packets:Q", "detail": "experiment:N"}
    altair.Chart(samples).mark_line().encode(**axes).save(str(theirs), inline=True)
    return ours, theirs


def opened(browser: Browser, file: Path, selector: str) -> float:
    """Return the seconds until a page is drawn."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        began = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_selector(selector, state="attached", timeout=LONGEST_MS)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
