"""Comparisons of two engines: the arithmetic on synthetic runs, and which cells are compared."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun
from thalweg.engine import Algorithm, Engine
from thalweg.errors import ThalwegError, ThalwegErrors
from thalweg.run import Outcome
from thalweg.validate import EngineSide, GridCell, GridPart, compare, load_grid, overall, ready_made

HONOURS = frozenset(
    [
        *("name", "about", "duration", "repetitions", "start_jitter", "path.rate", "path.rtt", "path.buffer"),
        *("path.loss", "flow.name", "flow.cc=name", "flow.size", "flow.start", "flow.repeat.gap", "flow.repeat.until"),
        *("flow.repeat.count", "flow.count", "flow.extra_rtt", "flow.ecn", "path.policer.rate", "path.policer.burst"),
        *("path.steps.at", "path.steps.rtt", "path.steps.loss", "path.queue.ecn"),
        *(f"path.queue{key}={name}" for key in ("", ".name") for name in ("codel", "fq_codel", "pie", "red")),
    ]
)
ARMS = ("htcp", "vegas", "bic", "illinois")
ALGORITHMS = {name: Algorithm(name, "", {}) for name in ("cubic", "reno", "bbr", "dctcp", *ARMS)}
SIM = Engine("sim", "", "2", available=True, why_not=None, algorithms=ALGORITHMS, honours=HONOURS)
KERNEL = replace(SIM, name="kernel", is_real_time=True)

PAIR = """\
name = "pair"
duration = "10s"
repetitions = 3
[path]
rate = "20Mbps"
rtt = "40ms"
[[flow]]
name = "a"
cc = "cubic"
[[flow]]
name = "b"
cc = "bbr"
[sweep]
"path.buffer" = ["1bdp", "8bdp"]
"""

MIX = """\
name = "mix"
duration = "10s"
repetitions = 3
[path]
rate = "20Mbps"
rtt = "40ms"
[[flow]]
name = "short"
cc = "cubic"
size = "1MB"
"""


def planned(tmp_path: Path, text: str, engines: tuple[Engine, Engine] = (SIM, KERNEL)) -> GridPart:
    (tmp_path / "grid.toml").write_text(text)
    (document,) = load_grid([str(tmp_path / "grid.toml")]).documents
    return GridPart.plan(document, engines, {engine.name: engine for engine in engines})


def ran(tmp_path: Path, side: EngineSide, fill: Any = None, failed: Sequence[dict[str, Any]] = ()) -> None:
    """Write the run directory of a side, with the rows that `fill` adds."""
    assert side.plan
    name = side.engine.name
    run = SyntheticRun(tmp_path / name, side.plan.model_dump()["experiments"], engine=name)
    run.events = list(failed)
    if fill:
        fill(run)
    side.ran(run.write(), Outcome(failed=list(failed)))


def unlimited_flow(run: SyntheticRun, number: int, repetition: int, name: str, mbps: float, **values: Any) -> None:
    """Add ten seconds of an unlimited flow."""
    acked = int(mbps * 1e6 * 10 / 8)
    run.transfer(number, repetition, name, end_us=10_000_000, acked_bytes=acked, size_bytes=None,
                 completed=False, **values)  # fmt: skip


def pair(a: Sequence[float], b: float, **values: Any) -> Any:
    """Return a function that writes the same synthetic goodputs at both points: those of `a` by repetition, and that of
    `b`.
    """

    def fill(run: SyntheticRun) -> None:
        for number in range(2):
            for repetition, mbps in enumerate(a):
                unlimited_flow(run, number, repetition, "a", mbps, **values)
                unlimited_flow(run, number, repetition, "b", b)

    return fill


def found(part: GridPart) -> dict[tuple[Any, ...], GridCell]:
    return {(*cell.point.values(), cell.flow): cell for cell in compare(part)}


def test_errors_are_those_of_the_medians_over_repetitions(tmp_path: Path) -> None:
    part = planned(tmp_path, PAIR)
    # medians: a has 9 and 10 Mbit/s; b has 11 and 5
    ran(tmp_path, part.sides[0], pair([9.0, 8.0, 13.0], 11.0, retransmits=20, rtt_mean_us=66_000.0))
    ran(tmp_path, part.sides[1], pair([10.0, 10.0, 1.0], 5.0, retransmits=10, rtt_mean_us=60_000.0))
    cells = found(part)
    assert list(cells) == [("1bdp", "a"), ("1bdp", "b"), ("8bdp", "a"), ("8bdp", "b")]
    a = cells["1bdp", "a"].measures
    assert set(a) == {"goodput", "retransmit_ratio", "rtt_mean", "share"}
    assert (a["goodput"].first, a["goodput"].second) == (9e6, 10e6)
    assert a["goodput"].error == pytest.approx(-0.1)
    assert a["retransmit_ratio"].error == pytest.approx(2.0)  # 20 and 10 of 1000
    assert a["rtt_mean"].error == pytest.approx(0.1)
    # shares of a: 9/20, 8/19, 13/24 and 10/15, 10/15, 1/6
    assert a["share"].error == pytest.approx(9 / 20 - 10 / 15)
    assert cells["1bdp", "b"].measures["goodput"].error == pytest.approx(1.2)
    assert {cell.state for cell in cells.values()} == {"compared"}


def test_a_flow_that_ends_is_judged_by_its_completion_time(tmp_path: Path) -> None:
    part = planned(tmp_path, MIX)

    def fill(*seconds: float) -> Any:
        def transfers(run: SyntheticRun) -> None:
            for repetition, second in enumerate(seconds):
                run.transfer(0, repetition, "short", end_us=int(second * 1e6))

        return transfers

    ran(tmp_path, part.sides[0], fill(1.2, 1.3, 0.2))
    ran(tmp_path, part.sides[1], fill(1.0, 3.0, 0.5))
    (cell,) = compare(part)
    assert set(cell.measures) == {"completion_time", "retransmit_ratio", "rtt_mean"}
    assert cell.measures["completion_time"].error == pytest.approx(0.2)


def test_a_transfer_that_one_engine_cut_off_has_no_error_but_a_note(tmp_path: Path) -> None:
    part = planned(tmp_path, MIX)
    ran(tmp_path, part.sides[0], lambda run: run.transfer(0, 0, "short"))
    ran(tmp_path, part.sides[1], lambda run: run.transfer(0, 0, "short", completed=False))
    (cell,) = compare(part)
    assert cell.measures["completion_time"].error is None
    assert cell.notes == ["kernel: short has no completion time to compare with"]


def test_summary_errors_use_absolute_values() -> None:
    errors = [*(("goodput", error) for error in (-0.1, 0.2, -0.3, 0.05, 0.0)), ("retransmit_ratio", 0.5)]
    goodput, retransmits = overall(errors)
    # sizes 0, 0.05, 0.1, 0.2, 0.3: the 90th percentile is six tenths of the way from 0.2 to 0.3
    assert (goodput.n, goodput.median, goodput.p90) == (5, pytest.approx(0.1), pytest.approx(0.26))
    assert (retransmits.n, retransmits.median, retransmits.p90) == (1, 2.0, 2.0)


def test_untrustworthy_cells_are_named_and_have_no_error(tmp_path: Path) -> None:
    part = planned(tmp_path, PAIR)

    def late(run: SyntheticRun) -> None:
        pair([10.0, 10.0, 10.0], 5.0)(run)
        for (_, _), rows in run._rows.items():
            for row in rows:
                if row["experiment"] == 0 or row["repetition"] == 1:
                    row["untrustworthy"] = "the relay was late"

    ran(tmp_path, part.sides[0], pair([10.0, 10.0, 10.0], 5.0))
    ran(tmp_path, part.sides[1], late)
    cells = found(part)
    entirely, partly = cells["1bdp", "a"], cells["8bdp", "a"]
    assert (entirely.state, entirely.measures) == ("untrustworthy", {})
    assert entirely.notes == ["kernel: 3 of 3 repetitions untrustworthy: the relay was late"]
    assert (partly.state, partly.notes) == (
        "compared",
        ["kernel: 1 of 3 repetitions untrustworthy: the relay was late"],
    )
    assert partly.measures["goodput"].error == 0.0


def test_cells_that_failed_or_were_not_run_are_named_with_the_reason(tmp_path: Path) -> None:
    part = planned(tmp_path, PAIR)

    def first_point(run: SyntheticRun) -> None:
        for repetition in range(3):
            unlimited_flow(run, 0, repetition, "a", 10.0)
            unlimited_flow(run, 0, repetition, "b", 10.0)

    id = f"{1:08x}{0:08x}"
    failed = [{"event": "failed", "id": id, "experiment": 1, "repetition": 0, "code": "x", "message": "no namespaces"}]
    ran(tmp_path, part.sides[0], pair([10.0, 10.0, 10.0], 5.0))
    ran(tmp_path, part.sides[1], first_point, failed)
    cells = found(part)
    assert cells["1bdp", "a"].state == "compared"
    assert cells["8bdp", "a"].state == "failed"
    assert cells["8bdp", "a"].notes == ["kernel: 1 of 3 repetitions failed: no namespaces"]


def test_without_complete_cells_failures_are_still_reported(tmp_path: Path) -> None:
    part = planned(tmp_path, PAIR)
    id = f"{0:08x}{0:08x}"
    failed = [{"event": "failed", "id": id, "experiment": 0, "repetition": 0, "code": "x", "message": "no namespaces"}]
    ran(tmp_path, part.sides[0], pair([10.0], 5.0))
    ran(tmp_path, part.sides[1], None, failed)
    cells = found(part)
    assert (cells["1bdp", "a"].state, cells["8bdp", "a"].state) == ("failed", "not run")
    assert cells["8bdp", "a"].notes == ["kernel: not run yet"]


def test_an_engine_without_an_algorithm_runs_the_other_points(tmp_path: Path) -> None:
    kernel = replace(KERNEL, algorithms={name: algorithm for name, algorithm in ALGORITHMS.items() if name != "bbr"})
    text = MIX + '[sweep]\n"flow.short.cc" = ["cubic", "bbr"]\n'
    part = planned(tmp_path, text, (SIM, kernel))
    assert [side.plan and len(side.plan.experiments) for side in part.sides] == [6, 3]
    ran(tmp_path, part.sides[0], lambda run: [run.transfer(number, 0, "short") for number in range(2)])
    ran(tmp_path, part.sides[1], lambda run: run.transfer(0, 0, "short"))
    cubic, bbr = compare(part)
    assert (cubic.state, bbr.state) == ("compared", "lacking")
    assert bbr.notes == ["the engine kernel has no congestion control `bbr` here"]


def test_an_engine_without_a_key_lacks_all_cells_of_the_scenario(tmp_path: Path) -> None:
    kernel = replace(KERNEL, honours=HONOURS - {"path.loss"})
    part = planned(tmp_path, MIX.replace("[[flow]]", "loss = 0.01\n[[flow]]"), (SIM, kernel))
    ran(tmp_path, part.sides[0], lambda run: run.transfer(0, 0, "short"))
    (cell,) = compare(part)
    assert (part.sides[1].plan, cell.state) == (None, "lacking")
    assert cell.notes == ["the engine `kernel` does not support `path.loss`"]


def test_simulated_hosts_have_the_kernel_generations_of_the_other_engine(tmp_path: Path) -> None:
    generations = ("6.1", "6.12", "6.18")
    sim = replace(SIM, honours=HONOURS | {"host.*.kernel", *(f"host.*.kernel={name}" for name in generations)})
    old = replace(KERNEL, generations={"senders": "6.1", "receiver": "6.18"})

    def kernels(text: str, *engines: Engine) -> list[dict[str, str | None]]:
        plans = [side.plan for side in planned(tmp_path, text, engines).sides if side.plan]
        return [{name: host.kernel for name, host in plan.experiments[0].hosts.items()} for plan in plans]

    free: dict[str, str | None] = {"sender": None, "receiver": None}
    alike: dict[str, str | None] = {"sender": "6.1", "receiver": "6.18"}
    assert kernels(MIX, sim, old) == [alike, free]
    assert kernels(MIX, old, sim) == [free, alike]
    assert kernels(MIX, sim, KERNEL) == [free, free]
    # What the scenario sets stays, and an engine that cannot honour it has no plan.
    (simulated,) = kernels(MIX + '[host.sender]\nkernel = "6.12"\n', sim, old)
    assert simulated == {"sender": "6.12", "receiver": "6.18"}


def test_a_scenario_that_neither_engine_can_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ThalwegErrors, match="no congestion control `westwood`"):
        planned(tmp_path, MIX.replace("cubic", "westwood"))


# --- the grid -------------------------------------------------------------------------------------------------------


def seconds(quick: bool) -> float:
    engines = {"sim": SIM, "kernel": KERNEL}
    parts = [GridPart.plan(document, (SIM, KERNEL), engines) for document in load_grid([], quick=quick).documents]
    return sum(part.sides[1].real_time_s for part in parts)


def test_the_bundled_grid_takes_two_hours_and_the_quick_one_a_quarter_of_an_hour() -> None:
    overhead_s = 1.5
    grid, quick = load_grid([]), load_grid([], quick=True)
    assert seconds(quick=False) + 3 * grid.cells * overhead_s < 120 * 60
    assert seconds(quick=True) + quick.cells * overhead_s < 16 * 60
    assert quick.cells + quick.left_out == grid.cells


def test_the_bundled_grid_covers_its_documented_range() -> None:
    swept = {key: document.raw["sweep"][key] for document in load_grid([]).documents for key in document.raw["sweep"]}
    assert {"5Mbps", "100Mbps"} <= set(swept["path.rate"])
    assert {"10ms", "100ms"} <= set(load_grid(["solo-rtt"]).documents[0].raw["sweep"]["path.rtt"])
    assert {"0.1bdp", "1bdp", "8bdp"} <= set(load_grid(["solo-buffer"]).documents[0].raw["sweep"]["path.buffer"])
    assert 0.05 in swept["path.loss"]
    assert swept["flow.many.count"] == [5, 10, 20, 50]
    assert [5, 10, 25] == swept["flow.cubic.count"] == swept["flow.bbr.count"]
    assert swept["flow.short.size"] == ["10kB", "100kB", "1MB"]
    assert {"duel-buffer", "pair-late", "pair-rtt", "mix-large-medium"} <= ready_made().keys()


def test_quick_keeps_range_limits_and_one_short_repetition(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PAIR.replace('["1bdp", "8bdp"]', '["1bdp", "2bdp", "8bdp"]').replace("10s", "60s"))
    (document,) = load_grid([str(tmp_path / "x.toml")], quick=True).documents
    assert document.raw["sweep"]["path.buffer"] == ["1bdp", "8bdp"]
    assert (document.raw["repetitions"], document.raw["duration"]) == (1, "10s")
    (document,) = load_grid([str(tmp_path / "x.toml")], quick=True, repetitions=4).documents
    assert document.raw["repetitions"] == 4


def test_parts_of_the_grid_are_selected_by_name_with_suggestions() -> None:
    assert load_grid(["solo-rtt", "solo-rtt"]).cells == 6
    with pytest.raises(ThalwegError, match="no grid `solo-rt`") as caught:
        load_grid(["solo-rt"])
    assert caught.value.hint == "did you mean `solo-rtt`?"


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one.toml", "two.toml"):
        (tmp_path / name).write_text(MIX)
    with pytest.raises(ThalwegError, match="two scenarios of the grid are named `mix`"):
        load_grid([str(tmp_path / "one.toml"), str(tmp_path / "two.toml")])
