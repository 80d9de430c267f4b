"""`thalweg compare` on the command line and in CI."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg.errors import Exit

Thalweg = Callable[..., Any]


BUFFERS = ["0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp"]


def a_study(directory: Path, engine: str = "sim", slower: float = 1.0) -> str:
    """Create a study of a large flow and a medium one, which takes longer with cubic than with bbr; retransmits are the
    same.
    """
    points = [{"flow.medium.cc": cc, "path.buffer": buffer} for cc in ("bbr", "cubic") for buffer in BUFFERS]
    flows = [flow("large"), flow("medium")]
    synthetic = SyntheticRun(
        directory,
        [
            experiment(number, n, sweep=dict(point), flows=flows)
            for number, point in enumerate(points)
            for n in range(3)
        ],
        engine,
    )
    for number, point in enumerate(points):
        for n in range(3):
            took = {"large": 8.0, "medium": 0.4 if point["flow.medium.cc"] == "bbr" else 0.9}
            for name, seconds in took.items():
                cc = "cubic" if name == "large" else point["flow.medium.cc"]
                end_us = round(seconds * slower * 1e6 * (1 + n / 100))
                synthetic.transfer(number, n, name, cc=cc, end_us=end_us, acked_bytes=1_000_000)
    return str(synthetic.write())


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    """Return a study on `sim`, and the same study on `kernel` with all times a tenth longer."""
    return a_study(tmp_path / "before"), a_study(tmp_path / "after", "kernel", slower=1.1)


def test_a_real_difference_is_reported_in_a_sentence_and_fails(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", *runs, "--flow", "large", "--measure", "goodput")
    assert done.returncode == Exit.FAILED
    sentence, _, heading, *rows = done.stdout.splitlines()
    assert "differences are real" in sentence
    assert "goodput of large at flow.medium.cc = " in sentence
    assert heading.split()[:2] == ["flow.medium.cc", "path.buffer"]
    assert len(rows) == 10
    assert all(row.rstrip().endswith("real") for row in rows)
    assert "engine kernel" in done.stderr


def test_a_run_compared_with_a_copy_passes(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", runs[0], str(shutil.copytree(runs[0], f"{runs[0]}-copy")))
    assert done.returncode == Exit.FINE
    assert done.stdout.startswith("No real difference in ")


def test_a_run_is_not_compared_with_itself(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    link = Path(f"{runs[0]}-link")
    link.symlink_to(runs[0])
    for second in (runs[0], f"{runs[1]}/../before", str(link)):
        done = thalweg("compare", runs[0], second)
        assert done.returncode == Exit.USAGE
        assert "A and B are the same run directory" in done.stderr
    assert f"`{runs[0]}` and `{link}`, which are `{runs[0]}`" in done.stderr


def test_a_tolerance_lets_small_differences_pass(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", *runs, "--flow", "large", "--measure", "goodput", "--tolerance", "20%")
    assert done.returncode == Exit.FINE
    assert "smaller than the tolerance of 20 %" in done.stdout


def test_all_rows_are_printed_on_request(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    few = thalweg("compare", *runs)
    every = thalweg("compare", *runs, "--all")
    assert len(few.stdout.splitlines()) < len(every.stdout.splitlines())
    assert "more real differences: --all" in few.stderr
    assert " not seen" in every.stdout


def test_json_has_every_row_with_its_numbers(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", runs[0], "--by", "flow.medium.cc", "--measure", "completion_time", "--json")
    assert done.returncode == Exit.FAILED
    document = json.loads(done.stdout)
    assert (document["by"], document["real"]) == (
        "flow.medium.cc",
        sum(row["verdict"] == "real" for row in document["rows"]),
    )
    row = next(row for row in document["rows"] if row["flow"] == "medium" and row["point"]["path.buffer"] == "8bdp")
    assert row["values"] == ["bbr", "cubic"]
    assert (row["first"]["n"], row["unit"], row["verdict"]) == (3, "s", "real")
    change = row["change"]
    assert change["kind"] == "relative"
    assert 0 < change["low"] < row["second"]["mean"] / row["first"]["mean"] - 1 < change["high"]


def test_a_comparison_within_a_run_names_both_values(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", runs[0], "--by", "flow.medium.cc", "--flow", "medium", "--measure", "completion_time")
    assert "bbr > cubic" in done.stdout


def test_exactly_one_comparison_target_is_required(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    for arguments in ([runs[0]], [*runs, "--by", "path.buffer"]):
        done = thalweg("compare", *arguments)
        assert done.returncode == Exit.USAGE
        assert "expected two run directories, or one and --by KEY" in done.stderr


@pytest.mark.parametrize(
    ("tolerance", "hint"), [("much", "5%"), ("-1%", "5%"), ("nan", "5%"), ("inf", "5%"), ("1", "1%"), ("20", "20%")]
)
def test_a_tolerance_must_be_a_percentage(thalweg: Thalweg, runs: tuple[str, str], tolerance: str, hint: str) -> None:
    done = thalweg("compare", *runs, f"--tolerance={tolerance}")
    assert done.returncode == Exit.USAGE
    assert f"`{tolerance}` is not a percentage" in done.stderr
    assert f"hint: --tolerance {hint}" in done.stderr


@pytest.mark.parametrize("tolerance", ["20%", "0.2", "120%"])
def test_a_tolerance_can_be_a_ratio_below_1(thalweg: Thalweg, runs: tuple[str, str], tolerance: str) -> None:
    done = thalweg("compare", *runs, "--flow", "large", "--measure", "goodput", "--tolerance", tolerance)
    assert done.returncode == Exit.FINE, done.stderr


def test_reasons_for_doubt_in_a_comparison_are_reported(thalweg: Thalweg, tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, n, flows=[flow(name)]) for n in range(4)])
        for repetition in range(3):
            mark = "the host was busy" if repetition == 2 else None
            synthetic.transfer(0, repetition, name, untrustworthy=mark)
        paths.append(str(synthetic.write()))
    done = thalweg("compare", *paths)
    assert (
        "A: 1 of 4 experiments is untrustworthy, and left out of the numbers; 1 of 4 experiments is not finished"
        in (done.stderr)
    )
    assert "A: the repetitions are copies of one another" in done.stderr
    assert "not compared: only A has goodput of a" in done.stderr
    assert done.stdout.startswith("Nothing was compared: only A has goodput of a")
    assert done.returncode == Exit.NO_EVIDENCE


def test_a_comparison_without_repetitions_is_not_evidence(thalweg: Thalweg, tmp_path: Path) -> None:
    paths = []
    for name, acked in (("a", 1_000_000), ("b", 2_000_000)):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, flows=[flow("large")])])
        synthetic.transfer(0, 0, "large", acked_bytes=acked)
        paths.append(str(synthetic.write()))
    done = thalweg("compare", *paths)
    assert done.returncode == Exit.NO_EVIDENCE, done.stderr
    assert done.stdout.startswith("No verdict on any of ")
    assert "with too few repetitions to decide" in done.stdout


def test_copies_are_evidence_only_if_both_sides_agree(thalweg: Thalweg, tmp_path: Path) -> None:
    """Equal repetitions have no variance, so a difference between the sides has no verdict."""
    paths = []
    for name, acked in (("a", 1_000_000), ("b", 1_200_000)):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, n, flows=[flow("large")]) for n in range(3)])
        for repetition in range(3):
            synthetic.transfer(0, repetition, "large", acked_bytes=acked)
        paths.append(str(synthetic.write()))
    for arguments, code in (
        ([paths[0], str(shutil.copytree(paths[0], tmp_path / "copy"))], Exit.FINE),
        (paths, Exit.NO_EVIDENCE),
        ([*paths, "--tolerance", "25%"], Exit.FINE),
    ):
        done = thalweg("compare", *arguments, "--measure", "goodput")
        assert done.returncode == code, (arguments, done.stdout)
        assert "because their repetitions are copies of one another" in done.stdout


def test_undecided_rows_fail_with_strict(thalweg: Thalweg, tmp_path: Path) -> None:
    """The goodput varies by 20 %, the completion time does not: equal runs leave the goodput undecided."""
    paths = []
    for name in ("a", "b"):
        synthetic = SyntheticRun(tmp_path / name, [experiment(0, n, flows=[flow("large")]) for n in range(3)])
        for repetition in range(3):
            synthetic.transfer(0, repetition, "large", acked_bytes=1_000_000 + repetition * 200_000)
        paths.append(str(synthetic.write()))
    goodput = ("compare", *paths, "--measure", "goodput", "--measure", "completion_time", "--tolerance", "10%")
    done = thalweg(*goodput)
    assert "1 with too few repetitions to decide" in done.stdout
    assert done.returncode == Exit.FINE
    for form in ([], ["--json"]):
        assert thalweg(*goodput, "--strict", *form).returncode == Exit.NOT_SETTLED
    assert thalweg("compare", *paths, "--measure", "completion_time", "--strict").returncode == Exit.FINE


@pytest.mark.parametrize(("first", "second", "code"), [(0, 1, Exit.FAILED), (1, 0, Exit.FINE)])
def test_only_regressions_fail_on_request(
    thalweg: Thalweg, runs: tuple[str, str], first: int, second: int, code: Exit
) -> None:
    """The second run is slower, so times increase and goodput decreases; shares have no better direction."""
    for measure, expected in (("goodput", code), ("completion_time", code), ("share", Exit.FINE)):
        named = ("--flow", "medium", "--measure", measure, "--fail-on", "worse")
        done = thalweg("compare", runs[first], runs[second], *named)
        assert done.returncode == expected, (measure, done.stdout)
    assert thalweg("compare", runs[1], runs[0], "--measure", "goodput").returncode == Exit.FAILED


def test_worse_rows_are_marked_and_come_first_if_only_they_fail(thalweg: Thalweg, runs: tuple[str, str]) -> None:
    done = thalweg("compare", *runs, "--flow", "medium", "--fail-on", "worse")
    rows = [line for line in done.stdout.splitlines() if line.endswith(("real", "real, worse"))]
    marks = [line.endswith("worse") for line in rows]
    assert f"B is worse in {sum(marks)} of {len(marks)} real differences." in done.stdout
    assert any(marks)
    assert marks == sorted(marks, reverse=True)
    assert not any("share" in line for line in rows if line.endswith("worse"))
    assert "worse" not in thalweg("compare", *runs, "--flow", "medium").stdout
