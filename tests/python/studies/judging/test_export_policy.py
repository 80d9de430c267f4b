"""Writing a study's policy as a file."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from thalweg.errors import Exit, ThalwegError
from thalweg.studies.claims.models import Policy
from thalweg.studies.judging import export_policy
from thalweg.studies.judging.judged import Judged

POLICY = Policy.model_validate(
    {
        "default": "cubic",
        "rules": [
            {
                "name": "shallow",
                "algorithm": "bbr",
                "when": {"buffer_bdp": {"at_most": 0.15}, "rtt_s": {"at_least": 0.01, "at_most": 0.3}},
                "reason": 'A "shallow"\nbuffer \\ cuts.',
                "source": "fig. 5",
                "cost": "It retransmits 3 to 12 %.",
                "claims": ["ahead", "repeats"],
            },
            {
                "name": "lossy",
                "algorithm": "bbr",
                "when": {"loss_ratio": {"at_least": 0.01}},
                "reason": "Loss stops CUBIC.",
                "source": "fig. 7",
                "claims": ["stops"],
            },
        ],
    }
)

HELD = {"ahead": Judged("holds", 0.22, 0.2, 0.24, 5), "repeats": Judged("holds", 0.034), "stops": Judged("holds", 0.05)}


def written(**changes: Judged) -> tuple[str, dict[str, Any]]:
    text = export_policy.text("a-study", POLICY, "sim", "3", HELD | changes, is_quick=False)
    return text, tomllib.loads(text)


def test_a_policy_rule_has_condition_action_reason_source_and_evidence() -> None:
    _, policy = written()
    assert (policy["format"], policy["default"]) == (1, "cubic")
    assert policy["source"].startswith("study a-study, full set, engine sim (results 3), thalweg ")
    shallow, lossy = policy["rules"]
    assert shallow["when"] == {"buffer_bdp": {"at_most": 0.15}, "rtt_s": {"at_least": 0.01, "at_most": 0.3}}
    assert (shallow["name"], shallow["algorithm"]) == ("shallow", "bbr")
    assert shallow["reason"] == 'A "shallow" buffer \\ cuts.'
    assert (shallow["source"], shallow["cost"]) == ("fig. 5", "It retransmits 3 to 12 %.")
    assert shallow["evidence"] == ["ahead: holds, 0.22 (0.2 to 0.24)", "repeats: holds, 0.034"]
    assert "cost" not in lossy


@pytest.mark.parametrize("verdict", ["does not hold", "not settled", "cannot run here"])
def test_a_rule_with_a_failed_claim_is_omitted_and_noted(verdict: Any) -> None:
    text, policy = written(repeats=Judged(verdict))
    assert [rule["name"] for rule in policy["rules"]] == ["lossy"]
    assert f"# Left out: shallow (repeats: {verdict})" in text


def test_results_of_a_quick_set_are_marked() -> None:
    text = export_policy.text("a-study", POLICY, "uml", "2", HELD, is_quick=True)
    assert "quick set, engine uml (results 2)" in tomllib.loads(text)["source"]


def test_an_unwritable_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ThalwegError, match="cannot be written") as error:
        export_policy.write("", tmp_path / "nowhere" / "policy.toml")
    assert error.value.exit_code == Exit.CANNOT_WRITE
