"""The paths of the study bbr1-bbr3 are the ones that its command draws from the population."""

import json
from collections import Counter

import population_paths
import pytest


def test_the_files_of_the_study_match_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["population_paths.py", "--check"])
    assert population_paths.main() == 0


def test_a_changed_draw_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["population_paths.py", "--check"])
    monkeypatch.setattr(population_paths, "SEED", 1)
    assert population_paths.main() == 1
    assert "paths.csv is out of date; run: python tools/population_paths.py" in capsys.readouterr().err


def test_path_kinds_occur_with_their_shares() -> None:
    kinds = [{"name": name, "share": share, "rate": rate, "rtt": "10ms", "buffer": "1bdp", "loss": 0.0}
             for name, share, rate in (("slow", 0.8, "1Mbps"), ("fast", 0.2, "100Mbps"))]  # fmt: skip
    drawn = population_paths.draw(kinds)
    counts = Counter(float(path["path.rate"].removesuffix("Mbps")) < 10 for path in drawn)
    assert counts[True] == pytest.approx(800, abs=50)


def test_values_stay_within_a_factor_of_two_of_their_kind() -> None:
    kinds = json.loads(population_paths.POPULATION.read_text())["kinds"][:1]
    rates = [float(path["path.rate"].removesuffix("Mbps")) for path in population_paths.draw(kinds)]
    assert 20 <= min(rates) < 22
    assert 72 < max(rates) <= 80
