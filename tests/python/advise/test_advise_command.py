"""`thalweg advise` as a user calls it, and the policy that it writes."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from synthetic_traffic import Traffic, write
from thalweg.errors import Exit

Thalweg = Callable[..., Any]

QUICK = ("--replicates", "200")


def lossy_gain(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.where(columns["is_far"], 0.75, 1.2)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write(tmp_path / "records" / "some.parquet", Traffic(effect=lossy_gain).frame())
    return tmp_path / "records"


def test_output_has_the_verdict_then_the_segments_then_the_next_step(thalweg: Thalweg, records: Path) -> None:
    done = thalweg("advise", str(records), *QUICK)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert re.match(r"bbr is better in 1 of 2 parts \(\d\d% of the samples\); cubic in 1 of 2 parts", lines[0])
    assert any("100 to 200 ms" in line and "1.5 to 5 %" in line and " bbr " in line for line in lines)
    assert any("10 to 30 ms" in line and "below 0.1 %" in line and " cubic " in line for line in lines)
    assert "Change to bbr first:" in done.stdout
    assert "95 % interval" in done.stderr


def test_json_contains_every_number(thalweg: Thalweg, records: Path) -> None:
    document = json.loads(thalweg("advise", str(records), *QUICK, "--json").stdout)
    assert document["samples"] == 20_000
    part = next(segment for segment in document["parts"] if segment["verdict"] == "bbr")
    metric = part["metrics"]["completion_time"]
    assert metric["ratios"]["0.5"]["low"] < 0.75 < metric["ratios"]["0.5"]["high"]
    assert metric["p_adjusted"] <= 0.05
    assert metric["treatment"]["samples"] + metric["control"]["samples"] == part["samples"]
    assert document["question"]["cluster"] == "prefix"


def test_the_policy_has_a_rule_per_gain_with_its_evidence(thalweg: Thalweg, records: Path) -> None:
    done = thalweg("advise", str(records), *QUICK, "--policy", "policy.toml")
    assert done.stdout.splitlines()[-1] == "policy.toml"
    policy = tomllib.loads(Path("policy.toml").read_text())
    (rule,) = policy["rules"]
    assert (policy["format"], policy["default"], rule["algorithm"]) == (1, "cubic", "bbr")
    assert rule["when"] == {
        "rtt_s": {"at_least": 0.1, "at_most": 0.2},
        "loss_ratio": {"at_least": 0.015, "at_most": 0.05},
    }
    assert "less time" in rule["reason"]
    assert any("completion_time: bbr, ratio of medians 0.7" in line for line in rule["evidence"])


def test_networks_become_rule_conditions_but_sizes_do_not(thalweg: Thalweg, tmp_path: Path) -> None:
    write(tmp_path / "r" / "some.parquet", Traffic(clients=4, effect=lossy_gain, hours=96).frame())
    thalweg("advise", "r", *QUICK, "--by", "prefix", "--policy", "by-prefix.toml")
    rules = tomllib.loads(Path("by-prefix.toml").read_text())["rules"]
    assert sorted(rule["when"]["prefix"] for rule in rules) == [["198.51.1.0/24"], ["198.51.3.0/24"]]
    done = thalweg("advise", "r", *QUICK, "--by", "prefix,size", "--policy", "by-size.toml")
    assert "by-size.toml has no rules: it leaves all connections with cubic" in done.stderr
    assert "# Left out: 198.51.1.0/24, 100 kB to 1 MB (an agent does not know" in Path("by-size.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--design", "before-after"], "--at is required for --design before-after"),
        (["--at", "2026-01-31"], "--at is required for --design before-after"),
        (["--design", "before-after", "--at", "soon"], "`soon` is not a time"),
        (["--every", "soon"], "`soon` does not fit"),
        (["--every", "1h"], "--every applies only to a switchback; the design is ab"),
        (["--design", "before-after", "--at", "2026-01-31", "--every", "30min"], "the design is before-after"),
        (["--size-limit", "3"], "the unit is missing"),
        (["--margin", "200%"], "`200%` is not a percentage between 0 and 100"),
        (["--by", "colour"], "the records have no column `colour`"),
        (["--by", "rtt", "--by", "rtt"], "a dimension is named twice"),
        (["--memory", "soon"], "DuckDB cannot be started"),
        (["--memory", "1GB", "--spark", "spark://127.0.0.1:7077"], "--memory limits queries on this machine"),
        (["--cluster", "pair"], "pairs of periods exist only in a switchback; the design is ab"),
        (["--treatment", "cubic"], "`cubic` cannot be compared with itself"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_options_are_explained(thalweg: Thalweg, records: Path, arguments: list[str], message: str) -> None:
    done = thalweg("advise", str(records), *arguments)
    assert done.returncode == Exit.USAGE
    assert message in done.stderr
    assert done.stdout == ""


def test_an_absent_algorithm_is_reported_with_the_available_ones(thalweg: Thalweg, records: Path) -> None:
    done = thalweg("advise", str(records), "--treatment", "bbr3")
    assert done.returncode == Exit.NO_EVIDENCE
    assert "`bbr3`" in done.stderr
    assert "cubic (" in done.stderr
    assert "choose two of them" in done.stderr


@pytest.mark.parametrize(("cc", "hint"), [("bbr", "run both at the same time"), (None, "--cc of `thalweg import`")])
def test_records_of_a_single_or_an_unknown_algorithm_get_a_fitting_hint(
    thalweg: Thalweg, tmp_path: Path, cc: str | None, hint: str
) -> None:
    write(tmp_path / "one" / "some.parquet", Traffic().frame().with_columns(cc=pl.lit(cc, pl.String)))
    assert hint in thalweg("advise", "one").stderr


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, "no destination of the records has a known AS"),
        ("h:49904e588c3b5db3", "the addresses of the records are hashed"),
    ],
)
def test_a_table_that_knows_no_destination_is_refused(
    thalweg: Thalweg, records: Path, address: str | None, message: str
) -> None:
    (file,) = records.iterdir()
    if address:
        pl.read_parquet(file).with_columns(remote_address=pl.lit(address)).write_parquet(file)
    Path("pfx2as.txt").write_text("192.0.2.0\t24\t64500\n")
    done = thalweg("advise", str(records), *QUICK, "--by", "as", "--prefixes", "pfx2as.txt")
    assert done.returncode == Exit.USAGE
    assert message in done.stderr
    assert done.stdout == ""
    # One known network is enough.
    if address is None:
        Path("pfx2as.txt").write_text("198.51.0.0\t16\t64500\n")
        assert "AS64500" in thalweg("advise", str(records), *QUICK, "--by", "as", "--prefixes", "pfx2as.txt").stdout


def test_a_table_without_the_column_is_refused_with_its_columns(thalweg: Thalweg, records: Path) -> None:
    Path("pfx2as.txt").write_text("198.51.0.0\t16\t64500\n")
    done = thalweg("advise", str(records), "--by", "country", "--prefixes", "pfx2as.txt")
    assert done.returncode == Exit.USAGE
    assert "the table of --prefixes has no column `country`, only `as`" in done.stderr
    assert "expected CSV with the columns network and country" in done.stderr
    Path("countries.csv").write_text("network,country\n198.51.0.0/16,DE\n")
    done = thalweg("advise", str(records), "--by", "as", "--prefixes", "countries.csv")
    assert "the table of --prefixes has no column `as`, only `country`" in done.stderr
    assert "or pfx2as of RouteViews" in done.stderr


@pytest.mark.parametrize(
    ("traffic", "headline"),
    [
        (Traffic(rows=600), "No part of the records has enough samples"),
        (Traffic(clients=2), "The records are inconclusive in 2 of 2 parts"),
    ],
    ids=["few samples", "few networks"],
)
def test_without_evidence_an_existing_policy_is_kept(
    thalweg: Thalweg, tmp_path: Path, traffic: Traffic, headline: str
) -> None:
    write(tmp_path / "r" / "some.parquet", traffic.frame())
    Path("policy.toml").write_text("before\n")
    arguments = ("advise", "r", *QUICK, "--policy", "policy.toml", "--out", "page.html")
    done = thalweg(*arguments)
    assert done.returncode == Exit.NO_EVIDENCE
    assert done.stdout.startswith(headline)
    assert done.stdout.splitlines()[-1] == "page.html"
    assert "policy.toml is not written or changed: the algorithms could not be compared in any part" in done.stderr
    as_json = thalweg(*arguments, "--json")
    assert as_json.returncode == Exit.NO_EVIDENCE
    assert "policy" not in json.loads(as_json.stdout)
    assert Path("policy.toml").read_text() == "before\n"


def test_a_comparison_without_a_gain_is_evidence(thalweg: Thalweg, tmp_path: Path) -> None:
    write(tmp_path / "r" / "some.parquet", Traffic(rows=5000, spread=1.5).frame())
    done = thalweg("advise", "r", *QUICK, "--policy", "policy.toml")
    assert done.returncode == Exit.FINE
    assert "policy.toml has no rules" in done.stderr
    assert "rules" not in tomllib.loads(Path("policy.toml").read_text())


def test_rows_that_no_arm_has_are_listed(thalweg: Thalweg, tmp_path: Path) -> None:
    frame = Traffic(hours=96, share=lambda columns: (columns["hour"] >= 48) * 1.0).frame()
    write(tmp_path / "r" / "some.parquet", frame)
    noon = "2026-11-23T13:00"
    done = thalweg("advise", "r", *QUICK, "--design", "before-after", "--at", noon)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("not compared: ")]
    assert line.endswith(" rows of bbr that began before --at, or of cubic that began after it")
    document = json.loads(thalweg("advise", "r", *QUICK, "--design", "before-after", "--at", noon, "--json").stdout)
    assert document["rows_without_arm"]["contradicts_design"] == int(line.split()[2].replace(",", ""))
    assert document["question"]["every_us"] is None


def test_no_temporary_files_remain(
    thalweg: Thalweg, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert thalweg("advise", str(records), *QUICK).returncode == 0
    assert thalweg("advise", str(records), "--treatment", "bbr3").returncode == Exit.NO_EVIDENCE
    assert not list(folder.iterdir())
