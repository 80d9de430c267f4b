"""The study better-bbr uses the paths that its command draws, and the documented winner of a search is chosen."""

import better_bbr
import pytest


def test_the_files_of_the_study_match_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["better_bbr.py", "paths", "--check"])
    assert better_bbr.main() == 0


def test_study_and_search_use_different_paths() -> None:
    files = better_bbr.paths()
    for name in ("converge", "fair", "mixed", "windows"):
        training, held_out = (set(files[f"{name}-{side}.csv"].splitlines()[1:]) for side in ("seen", "held-out"))
        assert len(training) == len(held_out) == 100
        assert not training & held_out


def candidate(number: int | None, first: float, second: float) -> dict[str, object]:
    values = {"mean share(theirs)": {"mean": first}, "mean utilisation": {"mean": second}}
    return {"candidate": number, "settings": {}, "values": values}


def test_the_winner_is_the_best_candidate_within_the_tolerance() -> None:
    quantities = [{"name": "mean share(theirs)", "goal": "maximise"}, {"name": "mean utilisation", "goal": "maximise"}]
    search = {"quantities": quantities, "default": candidate(None, 0.2, 0.9), "best": [candidate(1, 0.4, 0.7)]}
    assert better_bbr.winner(search)["candidate"] is None
    search["best"] = [candidate(1, 0.4, 0.7), candidate(2, 0.3, 0.895), candidate(3, 0.25, 0.95)]
    assert better_bbr.winner(search)["candidate"] == 2
