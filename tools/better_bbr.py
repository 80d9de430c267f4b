"""Generates the files of the study better-bbr: its paths, and the results of its searches.

    python tools/better_bbr.py paths             write paths and comparisons; with --check, compare the files
    python tools/better_bbr.py search RUNS       run the searches that RUNS lacks, and write winners.csv and *-best.toml

Each of the sets `converge`, `fair`, `mixed` and `windows` has 200 paths, of which every second one is held out:
searches use `NAME-seen.csv`, the study evaluates `NAME-held-out.csv`. `NAME-quick.csv` has the first held-out paths.
The sets of classes and of the kernel are parts of `mixed`.

The winner of a search is the best in the first objective among the candidates of its Pareto front and the default (the
scenario without changes), except those that are worse than the default in the second objective by more than `SLACK`.
"""

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from thalweg.scenario.toml_text import toml  # noqa: E402

STUDY = ROOT / "studies" / "better-bbr"
SEED = 2018_09229
"""Seed with which the study's files were drawn, an arbitrary constant."""
COUNT = 200
QUICK_COUNT = 8
"""Number of paths in the quick set."""
KERNEL_COUNTS = {"kernel-held-out": (16, 8), "kernel-quick": (4, 2)}
"""Numbers of held-out paths that a real kernel repeats: beside CUBIC, and alone with random loss."""
SLACK = 0.01
"""Maximum loss of a candidate in the second objective, as a fraction of the default's value."""

SEARCHES = ("gentle", "converge", "fair", "windows", "auto-share", "auto", "class-shallow", "class-deep", "class-lossy")
"""Scenarios with a `[search]` table."""

ALGORITHMS = {"flow.ours.cc": ["bbr", "bbr3", "cubic"]}
COMPARED: Mapping[str, tuple[str, dict[str, list[Any]]]] = {
    "converge-held-out": ("converge", ALGORITHMS),
    "mixed-held-out": ("gentle", ALGORITHMS),
    "fixed-held-out": ("gentle", {"flow.ours.cc_params.probe_gain": [1.05, 1.1, 1.25, 1.5]}),
    "windows-held-out": ("windows", {"host.receiver.rcvbuf_max": ["64kB", "256kB", "1MB", "4MB"]}),
}
"""Scenarios with which winners are compared, each with the search's scenario and the swept keys."""

HEAD = "#:schema ../../docs/schema/scenario.schema.json\n# Written by tools/better_bbr.py: do not edit.\n"

Row = dict[str, str]


def main() -> int:
    """Write the paths or compare them with the files, or run the searches."""
    parser = argparse.ArgumentParser(description="Write files of the study better-bbr.")
    parser.add_argument("what", choices=("paths", "search"))
    parser.add_argument("runs", nargs="?", type=Path, help="directory of the searches")
    parser.add_argument("--check", action="store_true", help="compare the paths with the files; write nothing")
    options = parser.parse_args()
    if options.what == "search":
        return _search(options.runs or ROOT / "runs" / "better-bbr")
    files = paths() | compared()
    stale = [name for name, wanted in files.items() if not options.check or _read(STUDY / name) != wanted]
    for name in stale:
        if options.check:
            print(f"studies/better-bbr/{name} is out of date; run: python tools/better_bbr.py paths", file=sys.stderr)
        else:
            (STUDY / name).write_text(files[name], encoding="utf-8")
    return 1 if options.check and stale else 0


# --- paths -----------------------------------------------------------------------------------------------------------


def paths() -> dict[str, str]:
    """Return the files of paths by name."""
    draws: dict[str, Callable[[Random], Row]] = {"converge": _step, "fair": _pair, "mixed": _mixed, "windows": _window}
    files: dict[str, str] = {}
    for number, (name, draw) in enumerate(draws.items()):
        random = Random(SEED + number)
        rows = [draw(random) for _ in range(COUNT)]
        training, held_out = rows[::2], rows[1::2]
        files |= {f"{name}-seen.csv": text(training), f"{name}-held-out.csv": text(held_out)}
        files[f"{name}-quick.csv"] = text(held_out[:QUICK_COUNT])
        if name == "mixed":
            for kind, is_of in KINDS.items():
                files[f"{kind}-seen.csv"] = text([row for row in training if is_of(row)])
                files[f"{kind}-held-out.csv"] = text([row for row in held_out if is_of(row)])
                files[f"{kind}-quick.csv"] = text([row for row in held_out if is_of(row)][:QUICK_COUNT])
            lossy = [row for row in held_out if KINDS["lossy"](row)]
            beside = [row for row in held_out if row not in lossy]
            for kind, (besides, losses) in KERNEL_COUNTS.items():
                files[f"{kind}.csv"] = text([*beside[:besides], *lossy[:losses]])
    return files


def text(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows as CSV.

    >>> text([{"path.rate": "1Mbps", "path.loss": "0"}])
    'path.rate,path.loss\\n1Mbps,0\\n'
    """
    return "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n"


def _log(random: Random, low: float, high: float) -> float:
    drawn: float = low * (high / low) ** random.random()
    return drawn


def _path(random: Random, rtt: tuple[float, float] = (10, 100)) -> Row:
    return {
        "path.rate": f"{_log(random, 5, 20):.4g}Mbps",
        "path.rtt": f"{_log(random, *rtt):.4g}ms",
        "path.buffer": f"{_log(random, 0.5, 8):.3g}bdp",
    }


def _step(random: Random) -> Row:
    """Draw a path whose rate increases or decreases; its buffer is in BDPs of the first rate."""
    path = _path(random)
    before, factor = float(path.pop("path.rate")[:-4]), _log(random, 1.3, 4)
    after = before * factor if random.random() < 0.7 else before / factor
    return {"path.steps.0.rate": f"{before:.4g}Mbps", "path.steps.1.rate": f"{after:.4g}Mbps", **path}


def _pair(random: Random) -> Row:
    path = _path(random)
    return {**path, "path.rtt": "10ms", "flow.far.extra_rtt": f"{random.uniform(0, 90):.3g}ms"}


def _window(random: Random) -> Row:
    return _path(random, (20, 150))


def _mixed(random: Random) -> Row:
    """Draw a path: three in five are shared with CUBIC; the others have losses, and there CUBIC sends only 10 kB."""
    path, is_beside = _path(random), random.random() < 0.6
    loss = "0" if is_beside else f"{_log(random, 0.003, 0.18):.3g}"
    return {**path, "path.loss": loss, "flow.theirs.size": "unlimited" if is_beside else "10kB"}


def _buffer(row: Row) -> float:
    return float(row["path.buffer"].removesuffix("bdp"))


KINDS: Mapping[str, Callable[[Row], bool]] = {
    "shallow": lambda row: row["path.loss"] == "0" and _buffer(row) <= 2,
    "deep": lambda row: row["path.loss"] == "0" and _buffer(row) > 2,
    "lossy": lambda row: row["path.loss"] != "0",
}
"""Classes of the mixed paths: shared with CUBIC with a shallow or a deep buffer, or alone with random loss."""


# --- searches --------------------------------------------------------------------------------------------------------


def _search(runs: Path) -> int:
    table = []
    for name in SEARCHES:
        scenario, out = STUDY / f"{name}.toml", runs / name
        if not (out / "search.json").exists():
            command = [sys.executable, "-m", "thalweg", "optimise", str(scenario), "--out", str(out)]
            subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})
        document = json.loads((out / "search.json").read_text(encoding="utf-8"))
        best = winner(document)
        table += _rows(name, document, best)
        _write_best(name, best["settings"])
    out_text = io.StringIO()
    writer = csv.writer(out_text, lineterminator="\n")
    writer.writerow(["search", "candidate", "settings", "objective", "on", "value", "default"])
    writer.writerows(table)
    (STUDY / "winners.csv").write_text(out_text.getvalue(), encoding="utf-8")
    return 0


def winner(search: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the winner of a search, as defined in the module's docstring."""
    first, second = (entry for entry in search["quantities"] if "goal" in entry)

    def score(candidate: Mapping[str, Any], quantity: Mapping[str, Any]) -> float:
        value = cast(float, candidate["values"][quantity["name"]]["mean"])
        return value if quantity["goal"] == "maximise" else -value

    default = search["default"]
    minimum = score(default, second) - SLACK * abs(score(default, second))
    able = [entry for entry in [*search["best"], default] if score(entry, second) >= minimum]
    return max(able, key=lambda entry: score(entry, first))


def _rows(name: str, search: Mapping[str, Any], best: Mapping[str, Any]) -> list[list[object]]:
    settings = " ".join(f"{key.rsplit('.', 1)[-1]}={value}" for key, value in best["settings"].items())
    rows: list[list[object]] = []
    for quantity in search["quantities"]:
        values = [candidate["values"][quantity["name"]]["mean"] for candidate in (best, search["default"])]
        number = "default" if best["candidate"] is None else best["candidate"]
        rows.append([name, number, settings, quantity["name"], "seen", *(f"{value:.5g}" for value in values)])
    return rows


def compared() -> dict[str, str]:
    """Return the scenarios with which winners are compared, by file name: those of searches, swept over algorithms or
    settings.
    """
    document = {}
    for name, (search, sweep) in COMPARED.items():
        scenario = _held_out(search)
        scenario |= {"name": f"better-bbr-{name}", "about": f"{search}.toml at the held-out points."}
        scenario["sweep"] |= sweep
        document[f"{name}.toml"] = HEAD + toml(scenario)
    return document


def _held_out(name: str) -> dict[str, Any]:
    """Return the scenario of a search at its held-out points."""
    scenario = tomllib.loads((STUDY / f"{name}.toml").read_text(encoding="utf-8"))
    del scenario["search"]
    scenario["sweep"] = {"rows": scenario["sweep"]["rows"][1:]}
    return scenario


def _write_best(name: str, settings: Mapping[str, object]) -> None:
    """Write the scenario of a search with its winner's settings."""
    scenario = _held_out(name)
    scenario["name"] += "-best"
    scenario["about"] = f"{name}.toml with the settings of the winner of its search (winners.csv)."
    for address, value in settings.items():
        first, which, *rest = address.split(".")
        for flow in scenario["flow"]:
            if first == "flow" and which in ("*", flow["name"]):
                flow.setdefault(rest[0], {})[rest[1]] = value
        if first != "flow":
            scenario.setdefault(first, {}).setdefault(which, {})[rest[0]] = value
    (STUDY / f"{name}-best.toml").write_text(HEAD + toml(scenario), encoding="utf-8")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
