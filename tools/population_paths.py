"""Draws paths from the population of `thalweg policy simulate` for the study bbr1-bbr3.

    python tools/population_paths.py             write studies/bbr1-bbr3/paths.csv and paths-quick.csv
    python tools/population_paths.py --check     compare these with the generated content

crates/policy/data/population.json has eleven kinds of paths with their shares, and only one path per kind. So each draw
selects a kind, with the probability of its share, and multiplies the kind's rate, round-trip time, buffer and loss by
independent factors between 1/2 and 2, uniform on a logarithmic scale. The shares are those of the population; the
factors are specific to this tool. A loss of 0 stays 0.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from thalweg.scenario.text import quantities  # noqa: E402

POPULATION = ROOT / "crates" / "policy" / "data" / "population.json"
STUDY = ROOT / "studies" / "bbr1-bbr3"
SEED = 2505_07741
"""Seed with which the study's files were drawn, an arbitrary constant."""
COUNT = 1000
QUICK_COUNT = 16
"""Number of paths in the quick set, the first ones of the full set."""
FACTOR = 2.0
"""Maximum factor of a kind's numbers; the minimum is its inverse."""
HEADER = "path.rate,path.rtt,path.buffer,path.loss"


def main() -> int:
    """Write the files, or compare them with the existing ones."""
    parser = argparse.ArgumentParser(description="Draw paths from the population of `thalweg policy simulate`.")
    parser.add_argument("--check", action="store_true", help="compare with the files; write nothing")
    options = parser.parse_args()
    paths = draw(json.loads(POPULATION.read_text(encoding="utf-8"))["kinds"])
    files = {"paths.csv": text(paths), "paths-quick.csv": text(paths[:QUICK_COUNT])}
    stale = [name for name, wanted in files.items() if not options.check or _read(STUDY / name) != wanted]
    for name in stale:
        if options.check:
            print(f"studies/bbr1-bbr3/{name} is out of date; run: python tools/population_paths.py", file=sys.stderr)
        else:
            (STUDY / name).write_text(files[name], encoding="utf-8")
    return 1 if options.check and stale else 0


def draw(kinds: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the paths in the order of the draws."""
    random = Random(SEED)
    drawn = random.choices(kinds, [kind["share"] for kind in kinds], k=COUNT)
    return [_path(kind, random) for kind in drawn]


def text(paths: Iterable[Mapping[str, str]]) -> str:
    """Return paths as CSV.

    >>> text([{"path.rate": "1Mbps", "path.rtt": "9ms", "path.buffer": "1bdp", "path.loss": "0"}])
    'path.rate,path.rtt,path.buffer,path.loss\\n1Mbps,9ms,1bdp,0\\n'
    """
    return "\n".join([HEADER, *(",".join(path.values()) for path in paths)]) + "\n"


def _path(kind: Mapping[str, Any], random: Random) -> dict[str, str]:
    def around(value: float) -> float:
        factor: float = FACTOR ** random.uniform(-1, 1)
        return value * factor

    rate_bps = around(quantities.rate(kind["rate"]))
    rtt_ms = around(quantities.time(kind["rtt"]) / 1e6)
    amount, unit = (kind["buffer"][:-3], "bdp") if kind["buffer"].endswith("bdp") else (kind["buffer"][:-2], "kB")
    buffer = around(float(amount))
    loss = around(kind["loss"])
    return {
        "path.rate": f"{rate_bps / 1e6:.4g}Mbps",
        "path.rtt": f"{rtt_ms:.4g}ms",
        "path.buffer": f"{buffer:.3g}{unit}",
        "path.loss": f"{loss:.3g}",
    }


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
