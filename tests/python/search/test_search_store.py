"""The store of a search: remains of a killed process do not block the next one."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_search import searched
from thalweg.errors import ThalwegError
from thalweg.search.candidates import Candidate
from thalweg.search.store import Store


def test_an_incomplete_store_is_recreated(tmp_path: Path) -> None:
    (tmp_path / "search.db.new").write_bytes(b"SQLite format 3" + bytes(5000))
    (tmp_path / "search.db.new-journal").write_bytes(bytes(512))
    store = Store(tmp_path, searched(tmp_path), seed=1)
    claimed = store.claim()
    assert claimed
    assert claimed.number == 0


def test_an_abandoned_candidate_is_resumed(tmp_path: Path) -> None:
    search = searched(tmp_path)
    first, second = (Store(tmp_path, search, seed=1) for _ in range(2))
    left = first.claim()
    assert left
    others = second.claim()
    assert others
    assert others.number == 1, "another process has the first one"
    left.lock.close()
    again = second.claim()
    assert again
    assert (again.number, again.settings) == (left.number, left.settings)


def test_a_budget_below_the_number_of_candidates_is_refused(tmp_path: Path) -> None:
    search = searched(tmp_path)
    store = Store(tmp_path, search, seed=1)
    claimed = [store.claim() for _ in range(2)]
    assert all(claimed)
    Store(tmp_path, replace(search, budget=2), seed=1)
    with pytest.raises(ThalwegError, match=r"the budget is 1, but .* has 2 candidates") as caught:
        Store(tmp_path, replace(search, budget=1), seed=1)
    assert "--budget 2" in str(caught.value.hint)


def test_results_are_visible_to_the_next_process(tmp_path: Path) -> None:
    search = searched(tmp_path)
    store = Store(tmp_path, search, seed=1)
    claimed = store.claim()
    assert claimed
    evaluated = Candidate(claimed.number, claimed.settings, [[1.0, 2.0]], "worse than 7")
    store.keep(claimed, evaluated)
    (kept,) = Store(tmp_path, search, seed=1).evaluated()
    assert kept == evaluated
    assert not store.is_shared()


def test_proposals_depend_only_on_the_number_and_the_results(tmp_path: Path) -> None:
    """This needs twelve candidates, because TPE begins after ten."""
    proposed = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        search = searched(folder)
        store, settings = Store(folder, search, seed=1), []
        for number in range(12):
            if name == "b":
                store = Store(folder, search, seed=1)
            claimed = store.claim()
            assert claimed
            settings.append(claimed.settings)
            store.keep(claimed, Candidate(claimed.number, claimed.settings, [[float(number)]]))
        proposed.append(settings)
    assert proposed[0] == proposed[1]
    assert len({str(proposal) for proposal in proposed[0]}) == 12
