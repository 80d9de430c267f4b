"""`bench/scaling.py` measures every size of a curve, and writes the page. Drawing the figures takes several seconds."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_a_row_per_size_and_the_growth_of_costs(tmp_path: Path) -> None:
    page, file = tmp_path / "scaling.md", tmp_path / "scaling.json"
    command = [sys.executable, ROOT / "bench" / "scaling.py", "--quick", "--curve", "flows"]
    done = subprocess.run([*command, "--page", page, "--out", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    sizes = {(row["series"], row["size"]) for row in document}
    assert sizes == {(series, size) for series in ("without samples", "100 samples a second") for size in (1, 10)}
    assert all(row["units"] > 500_000 and row["cpu_s"] > 0 and row["peak_bytes"] > 0 for row in document)
    text = page.read_text()
    assert text.count("| without samples |") == 2
    assert "- without samples: the cost grows by a factor of" in text
    for name in ("flows-cost.svg", "flows-memory.svg"):
        assert f"](scaling/{name})" in text
        assert (tmp_path / "scaling" / name).read_text().startswith("<svg")
