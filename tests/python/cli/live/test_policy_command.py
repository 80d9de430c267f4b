"""`thalweg policy simulate`: its table, and the error for unknown policies."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Thalweg = Callable[..., Any]


def summary(name: str, regret: float) -> dict[str, Any]:
    spread = {"median": regret, "worst_decile": 2 * regret}
    return {
        "policy": name,
        "regret_percent": spread,
        "regret_with_holdout_percent": {"median": regret + 0.5, "worst_decile": 2 * regret},
        "good_percent": {"median": 90.0, "worst_decile": 80.0},
        "settled": {"median": 7.0, "worst_decile": 31.0},
        "settled_after_change": None,
        "regret_while_busy_percent": {"median": 12.34, "worst_decile": 20.0},
        "harm_percent": {"median": -1.0, "worst_decile": 3.0},
        "by_kind_percent": {"far": regret, "near": 0.0},
    }


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the engine report the simulation of two policies."""
    answer, engine = tmp_path / "played.json", tmp_path / "engine"
    answer.write_text(json.dumps({"format": 1, "seeds": 7, "policies": [summary("bayes", 1.5), summary("ucb", 3.0)]}))
    arguments = "policy simulate --seeds 7 --retransmit-price 2.0 --policy bayes --policy ucb"
    engine.write_text(f'#!/bin/sh\n[ "$*" = "{arguments}" ] && cat {answer}\n')
    engine.chmod(0o755)
    monkeypatch.setenv("THALWEG_ENGINE", str(engine))


ASKED = ("policy", "simulate", "--seeds", "7", "--retransmit-price", "2", "--policy", "bayes", "--policy", "ucb")


@pytest.mark.usefixtures("played")
def test_policies_are_columns(thalweg: Thalweg) -> None:
    lines = [" ".join(line.split()) for line in thalweg(*ASKED).stdout.splitlines()]
    assert lines == [
        "policy regret worst tenth with hold-out good settled after a change short of CPU harm",
        "bayes 1.50 % 3.00 % 2.00 % 90.0 % 7 (31) - 12.3 % -1.0 %",
        "ucb 3.00 % 6.00 % 3.50 % 90.0 % 7 (31) - 12.3 % -1.0 %",
    ]


@pytest.mark.usefixtures("played")
def test_path_kinds_are_rows(thalweg: Thalweg) -> None:
    lines = thalweg(*ASKED, "--kinds", "--markdown").stdout.splitlines()
    assert lines == [
        "| path | bayes | ucb |",
        "| --- | ---: | ---: |",
        "| far | 1.50 % | 3.00 % |",
        "| near | 0.00 % | 0.00 % |",
    ]


@pytest.mark.usefixtures("played")
def test_json_contains_all_values(thalweg: Thalweg) -> None:
    assert json.loads(thalweg(*ASKED, "--json").stdout)["policies"][1] == summary("ucb", 3.0)


def test_an_unknown_policy_is_an_error_that_lists_the_known_ones(thalweg: Thalweg) -> None:
    done = thalweg("policy", "simulate", "--policy", "oracle")
    assert done.returncode == 2
    assert "error[unknown-policy]: `oracle` is not a policy" in done.stderr
    assert "expected one of static cubic, " in done.stderr


def test_an_engine_of_another_version_is_named(thalweg: Thalweg, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\necho \"error: unrecognized subcommand 'policy'\" >&2\nexit 2\n")
    engine.chmod(0o755)
    done = thalweg("policy", "simulate", THALWEG_ENGINE=str(engine))
    assert done.returncode == 4
    assert "unrecognized subcommand" in done.stderr
