"""Findings as sentences follow from the intervals."""

from pathlib import Path
from typing import Any

import pytest
from synthetic_runs import SyntheticRun, experiment, flow
from thalweg.report.content import Content
from thalweg.report.text.sentences import flow_name, sentences

SECOND = 1_000_000
BUFFERS = ("0.5bdp", "2bdp", "8bdp")


def race_sentences(
    directory: Path, shares: list[list[float]], ccs: tuple[str, str] = ("bbr", "cubic"), **more: Any
) -> list[str]:
    """Return the sentences of a run with two unlimited flows.

    Args:
        directory: An empty folder.
        shares: Per buffer, the share of the first flow in each repetition.
        ccs: Algorithms of the two flows.
        more: Additional keys of the first flow.
    """
    flows = [flow("ours", ccs[0], size_bytes=None, **more), flow("theirs", ccs[1], size_bytes=None)]
    experiments = [
        experiment(number, repetition, sweep={"path.buffer": BUFFERS[number]}, flows=flows)
        for number, of_buffer in enumerate(shares)
        for repetition in range(len(of_buffer))
    ]
    run = SyntheticRun(directory / "run", experiments)
    for number, of_buffer in enumerate(shares):
        for repetition, share in enumerate(of_buffer):
            for name, cc, part in (("ours", ccs[0], share), ("theirs", ccs[1], 1 - share)):
                run.transfer(
                    number,
                    repetition,
                    name,
                    cc=cc,
                    size_bytes=None,
                    completed=False,
                    end_us=SECOND,
                    acked_bytes=int(part * 1_000_000),
                )
    content = Content([run.write()])
    return [text.replace("\u202f", " ") for text in sentences(content.sweep, content.measurements)]


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        (
            [[0.84, 0.85, 0.83], [0.49, 0.51, 0.5], [0.15, 0.16, 0.14]],
            "ours (bbr) takes 84 % of the bytes at buffer 0.5bdp and 15 % at 8bdp; the two are even at 2bdp.",
        ),
        (
            [[0.84, 0.85, 0.83], [0.7, 0.71, 0.69], [0.15, 0.16, 0.14]],
            "ours (bbr) takes 84 % of the bytes at buffer 0.5bdp and 15 % at 8bdp;"
            " the two are even between 2bdp and 8bdp.",
        ),
        (
            [[0.84, 0.85, 0.83], [0.7, 0.71, 0.69], [0.6, 0.61, 0.59]],
            "ours (bbr) takes 84 % of the bytes at buffer 0.5bdp and 60 % at 8bdp;"
            " it has more than theirs (cubic) at every buffer.",
        ),
        (
            [[0.4, 0.6, 0.5], [0.45, 0.55, 0.5], [0.3, 0.7, 0.5]],
            "ours (bbr) takes 50 % of the bytes at buffer 0.5bdp and 50 % at 8bdp;"
            " no difference between the two is shown at any buffer.",
        ),
        (
            [[0.84, 0.85, 0.83], [0.4, 0.6, 0.5], [0.84, 0.85, 0.83]],
            "ours (bbr) takes 84 % of the bytes at buffer 0.5bdp and 84 % at 8bdp;"
            " no difference between the two is shown at 2bdp.",
        ),
        (
            [[0.84], [0.15]],
            "ours (bbr) takes 84 % of the bytes at buffer 0.5bdp and 15 % at 2bdp"
            " (without intervals: may be due to chance).",
        ),
    ],
)  # fmt: skip
def test_the_share_is_described_along_the_swept_key(tmp_path: Path, shares: list[list[float]], sentence: str) -> None:
    assert race_sentences(tmp_path, shares)[0] == sentence


def test_parallel_copies_are_measured_by_their_even_share(tmp_path: Path) -> None:
    sentence = race_sentences(tmp_path, [[0.7, 0.71, 0.69], [0.72, 0.71, 0.73]], count=3)[0]
    assert sentence.endswith("; it has less than an even share of 75 % at every buffer.")


def test_the_share_of_a_flow_with_a_size_is_not_a_finding(tmp_path: Path) -> None:
    flows = [flow("ours", "bbr", size_bytes=1000), flow("theirs", "cubic", size_bytes=None)]
    run = SyntheticRun(tmp_path / "run", [experiment(0, 0, flows=flows)])
    run.transfer(0, 0, "ours", cc="bbr", size_bytes=1000, acked_bytes=1000, end_us=SECOND)
    run.transfer(0, 0, "theirs", cc="cubic", size_bytes=None, completed=False, acked_bytes=9000, end_us=SECOND)
    content = Content([run.write()])
    assert not any("takes" in text for text in sentences(content.sweep, content.measurements))


def algorithms(directory: Path, goodputs: dict[str, list[list[int]]]) -> str:
    """Return the sentence about the swept algorithm of a flow, from the bytes of each repetition by algorithm and
    buffer.
    """
    ccs = list(goodputs)
    points = [(cc, number) for cc in ccs for number in range(len(goodputs[cc]))]
    experiments = [
        experiment(
            point, repetition, sweep={"flow.one.cc": cc, "path.buffer": BUFFERS[number]},
            flows=[flow("one", cc, size_bytes=None)],
        )
        for point, (cc, number) in enumerate(points)
        for repetition in range(len(goodputs[cc][number]))
    ]  # fmt: skip
    run = SyntheticRun(directory / "run", experiments)
    for point, (cc, number) in enumerate(points):
        for repetition, size in enumerate(goodputs[cc][number]):
            run.transfer(
                point, repetition, "one", cc=cc, size_bytes=None, completed=False, end_us=SECOND, acked_bytes=size
            )
    content = Content([run.write()])
    return next(text for text in sentences(content.sweep, content.measurements) if "Goodput of one" in text)


def test_an_algorithm_leads_where_its_interval_is_above_the_others(tmp_path: Path) -> None:
    sentence = algorithms(
        tmp_path,
        {
            "bbr": [[9000, 9010, 9020], [9000, 9010, 9020], [5000, 7000, 9000]],
            "cubic": [[8000, 8010, 8020], [9500, 9510, 9520], [5100, 7100, 9100]],
        },
    )
    assert sentence == (
        "Goodput of one is highest with bbr at 1 of 3 points, with cubic at 1;"
        " at 1 no algorithm is significantly better."
    )


def test_no_algorithm_leads_where_the_intervals_overlap(tmp_path: Path) -> None:
    sentence = algorithms(tmp_path, {"bbr": [[5000, 7000, 9000]] * 2, "cubic": [[5100, 7100, 9100]] * 2})
    assert sentence == "Goodput of one: no algorithm is significantly better at any of 2 points."


def test_a_flow_is_named_with_its_algorithm_unless_its_name_has_it(tmp_path: Path) -> None:
    flows = [flow("ours", "bbr", size_bytes=None), flow("cubic-flow", "cubic", size_bytes=None)]
    run = SyntheticRun(tmp_path / "run", [experiment(0, 0, flows=flows)])
    run.transfer(0, 0, "ours", cc="bbr")
    content = Content([run.write()])
    assert flow_name(content.sweep, "ours") == "ours (bbr)"
    assert flow_name(content.sweep, "cubic-flow") == "cubic-flow"


def test_without_intervals_the_best_means_are_counted_as_possible_chance(tmp_path: Path) -> None:
    sentence = algorithms(tmp_path, {"bbr": [[9000], [9000]], "cubic": [[1000], [1000]]})
    assert sentence == (
        "Goodput of one is highest with bbr at 2 of 2 points (without intervals: may be due to chance)."
    )


@pytest.mark.parametrize(
    ("directions", "expected"),
    [
        ((True,), ["The link of uploads is 80 % full."]),
        ((False, True), ["The link of downloads is 2 % full.", "The link of uploads is 80 % full."]),
        ((False,), ["The link is 2 % full."]),
    ],
)
def test_the_link_that_carries_the_data_is_described(
    tmp_path: Path, directions: tuple[bool, ...], expected: list[str]
) -> None:
    flows = [flow(f"flow-{number}", size_bytes=None, up=up) for number, up in enumerate(directions)]
    run = SyntheticRun(tmp_path / "run", [experiment(0, 0, flows=flows)])
    for number, up in enumerate(directions):
        run.transfer(
            0, 0, f"flow-{number}", size_bytes=None, completed=False, acked_bytes=9000, end_us=SECOND,
            direction="up" if up else "down",
        )  # fmt: skip
    for t_us in range(0, SECOND + 1, SECOND // 10):
        for name, share in (("forward", 0.02), ("reverse", 0.8)):
            run.queue(0, 0, t_us, link=name, sent_bytes=int(t_us * 5 * share), backlog_bytes=1500)
    content = Content([run.write()])
    found = [text.replace("\u202f", " ") for text in sentences(content.sweep, content.measurements)]
    assert [text for text in found if text.startswith("The link")] == expected
    places = ["of uploads" in text for text in found if text.startswith("A packet waits")]
    assert places == list(directions)
