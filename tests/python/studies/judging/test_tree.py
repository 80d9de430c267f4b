"""Decision trees that are learned from a synthetic grid with a known result."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow, link
from thalweg.engine import Engine
from thalweg.results import open_run
from thalweg.studies.claims.models import Tree
from thalweg.studies.claims.planned_part import PlannedPart
from thalweg.studies.judging import tree
from thalweg.studies.judging.data import PartData

RTT_S = 0.04
RATES = [10, 20, 50, 100, 200, 500]
BUFFERS_KB = [20, 50, 100, 500, 2000]


def table(*learn: dict[str, Any], **changes: Any) -> Tree:
    values: dict[str, Any] = {
        "part": "grid",
        "value": {"measure": "goodput", "flow": "large", "where": {"flow.large.cc": "bbr"}},
        "against": {"where": {"flow.large.cc": "cubic"}},
        "as": "gain",
        "above": "bbr",
        "below": "cubic",
        "source": "fig. 4",
        "paper": "rate > 875 Mbit/s   bbr",
        "learn": learn or ({"name": "one question", "features": ["buffer_bdp"], "depth": 1},),
    }
    return Tree.model_validate(values | changes)


@pytest.fixture
def grid(tmp_path: Path) -> dict[str, PartData]:
    """Return a grid in which BBR is ahead by 50 % if the buffer is below 0.3 BDP, and behind by 3 % otherwise: 13 of 30
    paths.
    """
    experiments, gains = [], []
    for rate in RATES:
        for buffer in BUFFERS_KB:
            for cc in ("cubic", "bbr"):
                sweep = {"path.rate": f"{rate}Mbps", "path.buffer": f"{buffer}kB", "flow.large.cc": cc}
                path = link(rate * 1_000_000, buffer * 1000)
                flows = [flow(cc=cc)]
                experiments.append(
                    experiment(len(experiments), sweep=sweep, forward=path, flows=flows, rtt_ns=int(RTT_S * 1e9))
                )
                is_shallow = buffer * 1000 < 0.3 * rate * 1e6 * RTT_S / 8
                gains.append({"cubic": 1.0, "bbr": 1.5 if is_shallow else 0.97}[cc])
    synthetic = SyntheticRun(tmp_path / "run", experiments)
    for number, gain in enumerate(gains):
        synthetic.transfer(number, 0, cc=experiments[number]["flows"][0]["cc"], acked_bytes=int(1_000_000 * gain))
    engine = Engine("sim", "", "3", True, None, {}, frozenset())
    return {"grid": PartData(PlannedPart("grid", engine), open_run(synthetic.write()))}


def test_a_tree_recovers_the_threshold_of_the_grid(grid: dict[str, PartData]) -> None:
    learned = tree.learn(table(), grid)
    assert (learned.points, learned.labels) == (30, {"bbr": 13, "cubic": 17})
    (one,) = learned.learned
    assert one.rules == [
        "buffer_bdp <= 0.3",
        "    bbr   (13 of 13 points)",
        "buffer_bdp > 0.3",
        "    cubic   (17 of 17 points)",
    ]
    assert one.accuracy > 0.9
    assert len(one.folds) == 5


def test_rules_have_units_and_no_redundant_splits(grid: dict[str, PartData]) -> None:
    (learned,) = tree.learn(table({"name": "deep", "features": ["rate_bps"], "depth": 3}), grid).learned
    assert [line.replace("\u202f", " ") for line in learned.rules] == [
        "rate_bps <= 35 Mbit/s",
        "    cubic   (9 of 10 points)",
        "rate_bps > 35 Mbit/s",
        "    rate_bps <= 75 Mbit/s",
        "        cubic   (3 of 5 points)",
        "    rate_bps > 75 Mbit/s",
        "        bbr   (10 of 15 points)",
    ]


def test_the_same_grid_yields_the_same_trees(grid: dict[str, PartData]) -> None:
    trees = table({"name": "deep", "features": ["rate_bps", "rtt_s", "buffer_bytes"], "depth": 3})
    assert tree.learn(trees, grid) == tree.learn(trees, grid)


def test_the_baseline_of_a_tree_is_the_majority_class(grid: dict[str, PartData]) -> None:
    learned = tree.learn(table({"name": "useless", "features": ["rtt_s"], "depth": 2}), grid)
    assert learned.guess == pytest.approx(17 / 30)
    assert learned.learned[0].rules == ["cubic   (17 of 30 points)"]
    assert learned.learned[0].accuracy < 0.6


def test_too_few_points_of_a_class_yield_a_reason_and_no_tree(grid: dict[str, PartData]) -> None:
    learned = tree.learn(table(level=0.6), grid)
    assert learned.learned == []
    assert "too few for 5 folds" in learned.note
    assert "no tree" in tree.section(table(), {"sim": learned})


def test_the_page_shows_the_papers_tree_beside_ours_with_its_accuracy(grid: dict[str, PartData]) -> None:
    text = tree.section(table(), {"sim": tree.learn(table(), grid)})
    assert "rate > 875 Mbit/s   bbr" in text
    assert "buffer_bdp <= 0.3" in text
    assert "**sim**: 30 points, bbr in 13, cubic in 17" in text
    assert "5-fold cross-validation" in text


def test_a_tree_without_a_paper_counterpart_is_shown_alone(grid: dict[str, PartData]) -> None:
    own = table(source="", paper="")
    assert "The paper" not in tree.section(own, {"sim": tree.learn(own, grid)})
